"""Where time goes, in every thread and process, and what the machine does meanwhile.

    with maple.perf.span("mine"): ...              # counts in the profile of `maple train --profile`
    with maple.perf.Profiler() as profiler: ...    # a profile of anything
    text_report(profiler.profile({}))

It imports nothing of Maple and never torch.
"""

from maple.perf.advice import bottleneck
from maple.perf.page import html_page
from maple.perf.profiler import Profiler, child_profile
from maple.perf.report import text_report
from maple.perf.shortline import ShortLine
from maple.perf.spans import Recorder, count, observe, span
from maple.perf.trace import chrome_trace

__all__ = [
    "Profiler",
    "Recorder",
    "ShortLine",
    "bottleneck",
    "child_profile",
    "chrome_trace",
    "count",
    "html_page",
    "observe",
    "span",
    "text_report",
]
