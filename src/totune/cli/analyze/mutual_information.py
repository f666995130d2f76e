"""`totune analyze mutual-information`: how many bits each block holds about the labels."""

from totune.cli.analyze.common import examples, states_command

EXAMPLES = examples(
    (
        "Each block of the default encoder, on dev:",
        "totune analyze mutual-information example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze mutual-information reviews.csv --study studies/reviews",
    ),
)

run = states_command(
    "mutual-information",
    "Estimate how many bits the hidden states of every block hold about the labels.",
)
