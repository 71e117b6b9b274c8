from __future__ import annotations

import numpy as np

from maple.games.ofc.cards import mask_of
from maple.games.ofc.show import show_view


def test_a_view_as_text() -> None:
    view = np.zeros(12, np.uint64)
    view[:6] = [mask_of(cards) for cards in ("Qc", "5d 5h", "Ac Kc", "2c 3d", "", "9s")]
    view[9], view[10] = mask_of("Td 4h 4s"), mask_of("7c")
    view[11] = 2 | 3 << 16 | 15 << 32
    assert show_view(view).splitlines() == [
        "street   3",
        "me       Qc .  .  | 5h 5d .  .  .  | Ac Kc .  .  .",
        "next     3d 2c .  | .  .  .  .  .  | 9s .  .  .  .",
        "previous in fantasyland, 15 cards face down",
        "hand     Td 4s 4h",
        "discards 7c",
    ]
