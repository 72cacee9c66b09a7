package database

import (
	"fmt"
	"io"

	"partnerapi/db/doctor"
)

// PrintRecounts writes a line for each count that was wrong.
func PrintRecounts(to io.Writer, wrong []doctor.Miscount) {
	for _, m := range wrong {
		fmt.Fprintf(to, "recounted: %s %s was %s, is %s\n", m.Counter, m.Key, m.Stored, m.Counted)
	}
}
