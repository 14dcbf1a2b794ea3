from .claims import CLAIMS as CLAIMS
from .reading import MarkovReading as MarkovReading
from .reading import run_numbers as run_numbers
from .setup import study_setup as study_setup
from .study import PAPER as PAPER
from .views import explain_run as explain_run
from .views import markov_views as markov_views
