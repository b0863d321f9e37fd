"""The errors that attnviz raises on purpose, all subclasses of `AttnvizError`.

Each message is one line that says what is wrong and, if it helps, what to do. Only the command line prints this line
and turns the error into an exit status.
"""

from __future__ import annotations


class AttnvizError(Exception):
    """Base of all errors that attnviz raises on purpose."""


class InputError(AttnvizError):
    """The text cannot be used."""


class TooLongError(InputError):
    """The text has more tokens than the model has positions."""


class SelectionError(AttnvizError):
    """There is no such layer, head, kind of attention, or other choice."""


class SettingsError(AttnvizError):
    """Settings exclude one another, or a setting makes no sense.

    Attributes:
        reason: the explanation, without the name of the setting.
        setting: the Python name of the setting that makes no sense; the command line prints the name of its option.
    """

    def __init__(self, reason: str, setting: str = "") -> None:
        super().__init__(f"Invalid value for '{setting}': {reason}" if setting else reason)
        self.reason, self.setting = reason, setting


class ModelError(AttnvizError):
    """The model cannot be used."""


class UnknownModelError(ModelError):
    """There is no such model."""


class UnreachableModelError(ModelError):
    """The model is not in the cache and cannot be downloaded now.

    Attributes:
        reason: the explanation, without advice.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason


class NoAttentionError(ModelError):
    """The model has no attention that attnviz can see."""


class NotVerifiedError(ModelError):
    """The captured weights could not be verified against the output of the model."""


class RecordError(AttnvizError):
    """The parts of a record do not fit together."""


class FileFormatError(RecordError):
    """A file does not hold a record that can be read."""


class OutputError(AttnvizError):
    """A file cannot be written."""


class AttnvizWarning(UserWarning):
    """Something that the user should know, but that is not an error."""
