package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

// TestReferenceExamples: every GET of the reference with its example parameters is answered with content by a
// demonstration, whenever that was made.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		guideTime, time.Date(2026, time.December, 31, 23, 30, 0, 0, time.UTC), time.Date(2028, time.February, 29, 0, 10, 0, 0, time.UTC),
	} {
		t.Run(at.Format(time.DateOnly), func(t *testing.T) {
			t.Parallel()
			d, err := db.Open(dbtest.URL(t, demonstrationOf("reference"+at.Format("20060102"), at)), db.WithClock(domain.NewManualClock(at)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			s := builtService(t, d, guideBase, resources{}, "serve", "--demo", "--release=latest")
			s.documents.Now = func() time.Time { return at }
			tried := 0
			for _, request := range exampleRequests(t, s) {
				tried++
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, request, nil)
				r.Header.Set("X-API-Key", "pk_demo_all")
				s.engine.ServeHTTP(w, r)
				var list struct{ Data []any }
				_ = json.Unmarshal(w.Body.Bytes(), &list)
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"data":[`) && len(list.Data) == 0 {
					t.Errorf("%s answers %d %s", request, w.Code, w.Body)
				}
			}
			if tried < 33 {
				t.Errorf("the reference has %d reads", tried)
			}
		})
	}
}

// exampleRequests are the paths and queries of the reads with the example parameters of the document that a
// service serves.
func exampleRequests(t *testing.T, s *service) (list []string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/openapi.json", nil))
	document, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths.Map() {
		if item.Get == nil {
			continue
		}
		query := url.Values{}
		for _, p := range item.Get.Parameters {
			example := p.Value.Example
			if example == nil && p.Value.Schema.Value != nil {
				example = p.Value.Schema.Value.Example
			}
			if example == nil {
				continue
			}
			text, ok := example.(string)
			if !ok {
				encoded, _ := json.Marshal(example)
				text = string(encoded)
			}
			if p.Value.In == openapi3.ParameterInPath {
				path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(text))
			} else {
				query.Set(p.Value.Name, text)
			}
		}
		if since, until := query.Get("since"), query.Get("until"); until != "" && since >= until {
			t.Errorf("%s: since %s is not before until %s", path, since, until)
		}
		list = append(list, "/v2"+path+"?"+query.Encode())
	}
	return list
}

// TestPlaceholders: without the demonstration, examples of ids are marked as what to replace.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s := builtService(t, opened(t, databaseFlag(t)), guideBase, resources{}, "serve", "--release=latest")
	var marked int
	for _, request := range exampleRequests(t, s) {
		if strings.Contains(request, "_01") || strings.Contains(request, "%40") && !strings.Contains(request, "name%40example.com") {
			t.Errorf("%s names an object of the demonstration", request)
		}
		if strings.Contains(request, "/YOUR_CLIENT_ID") {
			marked++
		}
	}
	if marked < 10 {
		t.Errorf("%d paths have YOUR_CLIENT_ID", marked)
	}
}
