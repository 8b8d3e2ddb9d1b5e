"""Tables of databases that JDBC's URLs name: PostgreSQL through psycopg, SQLite through Python's.

dialects    types, statements and connections of each database
sink        writes records to tables: insert, upsert, update, delete; makes and widens tables
source      reads tables: all rows, or those that are new by a number or a time; columns as fields
definition  what can be configured: the names of Confluent's connectors
connectors  the connectors' classes

Source: the documentation of Confluent's JDBC connector 10 (types of auto.create, texts of errors).
"""
