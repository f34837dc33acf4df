#!/usr/bin/env python3
"""Nothing wrong in silence: folders."""

from silence_support import Silence, main, picture, write


class Folder(Silence):
    def test_each_picture_has_the_class_of_its_folder(self):
        for i, name in enumerate(("b", "a", "B")):
            write(self.path / "in" / name / "x.png", picture(i))
        self.expect_stored([self.path / "in"], {"b/x.png": 0, "a/x.png": 1, "B/x.png": 2}, {"B/x.png": 0, "a/x.png": 1, "b/x.png": 2})


if __name__ == "__main__":
    main()
