package ginop

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"partnerapi/v2/op"
)

// locations finds the paths at which operations that create can say their
// objects are: by the id of the creating operation, the path of the one that
// reads such an object, or where none does, that acts on one.
func locations(set *op.Set) map[string]string {
	paths := map[string]string{}
	for _, creating := range set.All() {
		if creating.Meta().Status != http.StatusCreated {
			continue
		}
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			if path := objectPath(set, creating, method); path != "" {
				paths[creating.Meta().ID] = path
				break
			}
		}
	}
	return paths
}

// objectPath is the path of an operation with the method on one object of the
// kind that another creates; empty where there is none. Its last parameter is
// the object's id, its others are the creating operation's too.
func objectPath(set *op.Set, creating op.Operation, method string) string {
	id, ok := creating.Output().FieldByName("ID")
	if !ok {
		return ""
	}
	for _, o := range set.All() {
		params := o.Input().Path
		if o.Meta().Method != method || len(params) == 0 {
			continue
		}
		last := params[len(params)-1]
		rest, ok := strings.CutSuffix(o.Meta().Path, "/:"+last.Name)
		if ok && last.Type == id.Type && covered(params[:len(params)-1], creating.Input().Path) {
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
// objects, by the id that the answer shows.
func locate(c *gin.Context, prefix, path string, body []byte) {
	var created struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &created); err != nil || created.ID == "" {
		return
	}
	var location strings.Builder
	location.WriteString(prefix)
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			segment = url.PathEscape(c.Param(name))
		}
		location.WriteString("/" + segment)
	}
	location.WriteString("/" + url.PathEscape(created.ID))
	c.Header("Location", location.String())
}
