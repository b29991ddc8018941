"""Judges a sharded data set of recorded calls with pitool on Spark, and adds the verdicts up.

    spark-submit validate.py TOOLS OUT SHARD...

Shards and tools lie where every worker sees them, and pitool is on its PATH (or PITOOL names it). A task judges whole
shards, so that a line keeps its number; a task that fails or is run twice gives the same lines again, and each line
counts once by its id (source, line, call). OUT gets one JSON line per tool, replaced as a whole.
"""

import os
import shlex
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

VERDICT = "source string, line long, call int, tool string, ok boolean"


def main(tools: str, out: str, shards: list[str]) -> None:
    spark = SparkSession.builder.appName("pitool-validate").getOrCreate()
    shard_sh = Path(__file__).resolve().parent / "shard.sh"
    # pipe() gives a task the paths of its shards on stdin; a failure of any fails the task, and Spark runs it again.
    each = f'while IFS= read -r shard; do {shlex.quote(str(shard_sh))} {shlex.quote(tools)} "$shard" || exit; done'
    environment = {name: os.environ[name] for name in ("PATH", "PITOOL") if name in os.environ}
    paths = spark.sparkContext.parallelize(shards, len(shards))
    lines = paths.pipe(f"sh -c {shlex.quote(each)}", env=environment, checkCode=True)

    verdicts = spark.read.schema(VERDICT).json(lines).dropDuplicates(["source", "line", "call"])
    count = f.count_if
    by_tool = (
        verdicts.groupBy("tool")
        .agg(
            count(f.col("ok")).alias("valid"),
            count(~f.col("ok") & f.col("call").isNotNull()).alias("invalid"),
            count(f.col("call").isNull()).alias("unreadable"),
        )
        .orderBy("tool")
    )
    by_tool.coalesce(1).write.mode("overwrite").json(out)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
