package ingest

// IngestImpatiently is Ingest with something else than the clock to say that a
// batch has waited long enough for more lines.
var IngestImpatiently = ingest
