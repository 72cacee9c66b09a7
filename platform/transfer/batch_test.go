package transfer

// ImportIn is Import in batches of up to so many lines.
var ImportIn = importIn
