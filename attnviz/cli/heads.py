"""``attnviz compare-heads``, ``attnviz head`` and ``attnviz merge``."""

from attnviz.cli.groups import as_command
from attnviz.heads import command as old

EXAMPLES = old.EXAMPLES
HEAD_EXAMPLES = old.HEAD_EXAMPLES
MERGE_EXAMPLES = old.MERGE_EXAMPLES
compare_heads = as_command(old.command)
head = as_command(old.head_command)
merge = as_command(old.merge_command)
