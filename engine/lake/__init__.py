"""The lake: Spark and Delta tables. The only place that knows pyspark and deltalake."""
