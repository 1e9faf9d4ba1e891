-- What each model makes of our estimate of its tokens (B6): learnt from the usage it reports.
CREATE TABLE providers (
    model        TEXT PRIMARY KEY,
    factor       REAL NOT NULL,    -- its own tokens per cl100k token, smoothed
    peak         REAL NOT NULL,    -- the most it ever needed: the ceiling holds by this one
    observations INTEGER NOT NULL,
    updated_at   TEXT NOT NULL
) STRICT;
