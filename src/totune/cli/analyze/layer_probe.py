"""`totune analyze layer-probe`: what each block of an encoder knows of the labels."""

from totune.cli.analyze.common import examples, states_command

EXAMPLES = examples(
    (
        "Each block of the default encoder:",
        "totune analyze layer-probe example:rotten-tomatoes",
    ),
    (
        "Beside it those that a study has fine-tuned, in the study's report:",
        "totune analyze layer-probe reviews.csv --study studies/reviews --strategies fine-tuning",
    ),
)

run = states_command(
    "layer-probe", "Train a linear probe on every block and show what it scores on dev."
)
