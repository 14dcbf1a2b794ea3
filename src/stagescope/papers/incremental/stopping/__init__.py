"""Early stopping of students."""
