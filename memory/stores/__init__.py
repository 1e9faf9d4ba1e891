"""All SQL but the migrations: one module per kind of row."""
