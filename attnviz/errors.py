"""Every error that attnviz raises on purpose, each a kind of `AttnvizError`.

Each message is one line that says what is wrong and, where it helps, what to do. Only the command line turns errors
into that line and an exit status.
"""

from __future__ import annotations


class AttnvizError(Exception):
    """Anything that attnviz refuses on purpose."""


class InputError(AttnvizError):
    """The text cannot be used."""


class TooLongError(InputError):
    """The text has more tokens than the model has positions."""


class SelectionError(AttnvizError):
    """A layer, head or kind of attention that is not there."""


class SettingsError(AttnvizError):
    """Settings that exclude one another, or one that makes no sense.

    Attributes:
        reason: why, without the name of the setting.
        setting: the one that makes no sense, as Python names it; the command line names its option.
    """

    def __init__(self, reason: str, setting: str = "") -> None:
        super().__init__(f"Invalid value for '{setting}': {reason}" if setting else reason)
        self.reason, self.setting = reason, setting


class ModelError(AttnvizError):
    """The model cannot be used."""


class UnknownModelError(ModelError):
    """There is no such model."""


class UnreachableModelError(ModelError):
    """The model is neither in the cache nor can it be downloaded now.

    Attributes:
        reason: why, without advice.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason


class NoAttentionError(ModelError):
    """The model has no attention that attnviz can see."""


class NotVerifiedError(ModelError):
    """The captured weights could not be proved to be what the model computed."""


class RecordError(AttnvizError):
    """The parts of a record do not fit together."""


class FileFormatError(RecordError):
    """A file does not hold a record that can be read."""


class OutputError(AttnvizError):
    """A file cannot be written."""


class AttnvizWarning(UserWarning):
    """Something a user should know, where no error is due."""
