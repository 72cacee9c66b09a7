package ginop

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v2/op"
)

// place is where the objects are that an operation creates.
type place struct {
	// path is that of the objects; empty for an operation that creates none.
	path string
	// within is the member of the answer that shows the object; empty where the
	// answer itself does.
	within string
}

// locations finds the paths at which operations that create can say their
// objects are: by the id of the creating operation, the path of the one that
// reads such an object, or where none does, that acts on one.
func locations(set *op.Set) map[string]place {
	paths := map[string]place{}
	for _, creating := range set.All() {
		if creating.Meta().Status != http.StatusCreated {
			continue
		}
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			id, within := createdID(creating.Output())
			if path := objectPath(set, creating, id, method); path != "" {
				paths[creating.Meta().ID] = place{path, within}
				break
			}
		}
	}
	return paths
}

// createdID is the type of the id of what an output shows as created, and the
// member that shows it; nil where there is none.
func createdID(output reflect.Type) (id reflect.Type, within string) {
	if own, ok := output.FieldByName("ID"); ok {
		return own.Type, ""
	}
	for i := range output.NumField() {
		f := output.Field(i)
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		if part, ok := f.Type.FieldByName("ID"); ok {
			return part.Type, op.WireName(f)
		}
	}
	return nil, ""
}

// objectPath is the path of an operation with the method on one object of the
// kind of id that another creates; empty where there is none. Its last parameter
// is the object's id, its others are the creating operation's too.
func objectPath(set *op.Set, creating op.Operation, id reflect.Type, method string) string {
	for _, o := range set.All() {
		params := o.Input().Path
		if o.Meta().Method != method || len(params) == 0 {
			continue
		}
		last := params[len(params)-1]
		rest, ok := strings.CutSuffix(o.Meta().Path, "/:"+last.Name)
		if ok && last.Type == id && covered(params[:len(params)-1], creating.Input().Path) {
			return rest
		}
	}
	return ""
}

// covered reports whether all of the parameters are among the others.
func covered(params, others []op.Param) bool {
	for _, p := range params {
		if !hasParam(others, p.Name, p.Type) {
			return false
		}
	}
	return true
}

func hasParam(params []op.Param, name string, t reflect.Type) bool {
	for _, p := range params {
		if p.Name == name && p.Type == t {
			return true
		}
	}
	return false
}

// locate says where the object is that a request created: under a path of
// objects, by the id that the answer shows. A dry run creates none.
func locate(c *gin.Context, prefix string, at place, body []byte) {
	var answer map[string]jsontext.Value
	if err := json.Unmarshal(body, &answer); err != nil || string(answer["dry_run"]) == "true" {
		return
	}
	if at.within != "" {
		body = answer[at.within]
	}
	var created struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &created); err != nil || created.ID == "" {
		return
	}
	var location strings.Builder
	location.WriteString(prefix)
	for segment := range strings.SplitSeq(strings.TrimPrefix(at.path, "/"), "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			segment = url.PathEscape(c.Param(name))
		}
		location.WriteString("/" + segment)
	}
	location.WriteString("/" + url.PathEscape(created.ID))
	c.Header("Location", location.String())
}
