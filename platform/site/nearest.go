package site

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"partnerapi/domain"
)

// nearestLink returns a sentence with a link to the page whose path has the most similar last segment to that of an
// unknown path; empty if more than two fifths of its letters differ. Of several, it is the one whose whole path is the
// most similar.
func (s *Site) nearestLink(path string) string {
	const longest, most = 100, 0.4 // bytes of a path that is compared
	path = strings.ToLower(strings.Trim(path, "/"))
	if len(path) > longest {
		return ""
	}
	var nearest page
	var least [2]float64
	for _, p := range s.builder.listed {
		known := strings.Trim(p.Path, "/")
		now := [2]float64{difference(lastSegment(path), lastSegment(known)), difference(path, known)}
		if now[0] <= most && (nearest.Path == "" || slices.Compare(now[:], least[:]) < 0) {
			nearest, least = p, now
		}
	}
	if nearest.Path == "" {
		return ""
	}
	return fmt.Sprintf(`<p>Did you mean <a href="%s">%s</a>?</p>`, s.config.Root()+nearest.Path, template.HTMLEscapeString(nearest.Title))
}

// lastSegment returns the part of a path after its last slash, without the extension of a file.
func lastSegment(path string) string {
	name, _, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], ".")
	return name
}

// difference returns the edit distance of two texts as a share of the longer one: 0 for equal texts, 1 for others of
// which one is empty.
func difference(a, b string) float64 {
	return float64(domain.EditDistance(a, b)) / float64(max(1, len(a), len(b)))
}
