package site

import "github.com/getkin/kin-openapi/openapi3"

// sample is the first request of the start page in a language.
type sample struct{ Language, Name, Lexer, Text string }

// FirstRequests returns the same request in several languages.
func (layout) FirstRequests() []sample {
	return []sample{
		{"curl", "curl", "sh", `curl -H "X-API-Key: pk_demo_all" \
  "` + SampleBase + `/v2/clients?sort=created_at&limit=1"`},
		{"python", "Python", "python", `import json, urllib.request

request = urllib.request.Request(
    "` + SampleBase + `/v2/clients?sort=created_at&limit=1",
    headers={"X-API-Key": "pk_demo_all"},
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response), indent=2))`},
		{"js", "JavaScript", "js", `const response = await fetch(
  "` + SampleBase + `/v2/clients?sort=created_at&limit=1",
  { headers: { "X-API-Key": "pk_demo_all" } },
);
console.log(await response.json());`},
	}
}

// FirstResponse returns a part of the response to FirstRequests.
func (layout) FirstResponse() string {
	return `{
  "data": [
    {
      "id": "cli_01happrbtrefw90048ft35y9rf",
      "name": "Hollowbrook Manufacturing",
      "users": { "active": 107, "inactive": 13 },
      "risk": {
        "average_score": 762,
        "grade": "B",
        "high_risk_users": 4
      },
      …
    }
  ],
  "page": { "next_cursor": "…", "has_more": true }
}`
}

// resource is a resource of an API with its operations.
type resource struct {
	Title      string
	Operations []*operation
}

// Resources returns the resources in the order of the document's tags.
func (r *reference) Resources() (list []resource) {
	last := ""
	for _, o := range r.Operations {
		if name := o.source.Tags[0]; name != last {
			list, last = append(list, resource{Title: titleOf(r.Document.Tags.Get(name))}), name
		}
		of := &list[len(list)-1]
		of.Operations = append(of.Operations, o)
	}
	return list
}

// titleOf returns the title of a tag, or its name if it has no title.
func titleOf(tag *openapi3.Tag) string {
	if title, ok := tag.Extensions["x-displayName"].(string); ok && title != "" {
		return title
	}
	return tag.Name
}

// Preferred returns the reference of the preferred version, Older those of the others.
func (l layout) Preferred() *reference { return l.References[0] }

// Older returns the references of the versions that are not preferred.
func (l layout) Older() []*reference { return l.References[1:] }

// TryPath returns the link to the operation of FirstRequests, or to the reference if it lacks the operation.
func (l layout) TryPath() string {
	if link := l.operations["GET /v2/clients"]; link != "" {
		return link
	}
	return l.Preferred().Path
}
