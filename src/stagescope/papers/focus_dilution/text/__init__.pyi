from .claims import CLAIMS as CLAIMS
from .reading import TextFocusReading as TextFocusReading
from .setup import about_text as about_text
from .setup import study_setup as study_setup
from .views import explain_run as explain_run
from .views import text_focus_views as text_focus_views
