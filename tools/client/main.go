// Command client checks the clients that oapi-codegen generates from the OpenAPI
// documents. For every example, it makes the call with typed parameters, and checks
// that the request is that of the example and that the typed response contains the
// whole response of the example. make contract generates the clients first.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "partnerapi/tools/out/v1"
	v2 "partnerapi/tools/out/v2"
)

// base is the address of a server that no request reaches.
const base = "http://service.invalid"

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: client V2-DOCUMENT V2-EXAMPLES V1-DOCUMENT V1-EXAMPLES")
		os.Exit(2)
	}
	doer := &stub{}
	newer, err := v2.NewClientWithResponses(base+"/v2", v2.WithHTTPClient(doer))
	exitOn(err)
	older, err := v1.NewClientWithResponses(base+"/v1", v1.WithHTTPClient(doer))
	exitOn(err)
	n := tryAll(reflect.ValueOf(newer), doer, os.Args[1], os.Args[2])
	n += tryAll(reflect.ValueOf(older), doer, os.Args[3], os.Args[4])
	fmt.Printf("the generated Go clients make and decode %d examples\n", n)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// example is an example of a call, as package openapi reads it.
type example struct {
	Path, Query    map[string]string
	Body, Response json.RawMessage
	Status         int
}

// stub answers with the example, and keeps the request.
type stub struct {
	example example
	request *http.Request
	body    []byte
}

// Do is the client's transport.
func (s *stub) Do(req *http.Request) (*http.Response, error) {
	s.request, s.body = req, nil
	if req.Body != nil {
		s.body, _ = io.ReadAll(req.Body)
	}
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	return &http.Response{
		StatusCode: s.example.Status, Header: header, Request: req,
		Body: io.NopCloser(bytes.NewReader(s.example.Response)),
	}, nil
}

// tryAll tries each operation of the document, and returns how many there are.
func tryAll(client reflect.Value, doer *stub, document, examples string) (n int) {
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	exitOn(err)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			id := operation.OperationID
			text, err := os.ReadFile(filepath.Join(examples, id+".json"))
			exitOn(err)
			doer.example = example{}
			exitOn(json.Unmarshal(text, &doer.example))
			if err := try(client, doer, id, method, path); err != nil {
				exitOn(fmt.Errorf("%s: %w", id, err))
			}
			n++
		}
	}
	return n
}

// try makes one call and compares request and response with the example.
func try(client reflect.Value, doer *stub, id, method, path string) error {
	e := doer.example
	name := camel(id) + "WithResponse"
	call := client.MethodByName(name)
	if !call.IsValid() {
		return fmt.Errorf("the client has no method %s", name)
	}
	args, err := arguments(call.Type(), path, e)
	if err != nil {
		return err
	}
	out := call.Call(args)
	if err, _ := out[1].Interface().(error); err != nil {
		return err
	}
	if err := sameRequest(doer, method, path); err != nil {
		return err
	}
	if len(e.Response) == 0 {
		return nil
	}
	typed := out[0].Elem().FieldByName(fmt.Sprintf("JSON%d", e.Status))
	if !typed.IsValid() || typed.IsNil() {
		return fmt.Errorf("the answer %d was not decoded", e.Status)
	}
	again, err := json.Marshal(typed.Interface())
	if err != nil {
		return err
	}
	return same("response", again, e.Response)
}

// arguments are those of a method: a context, the path's parameters, those of the
// query, and the body, so far as it takes them.
func arguments(t reflect.Type, path string, e example) ([]reflect.Value, error) {
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for _, found := range inPath.FindAllStringSubmatch(path, -1) {
		v := reflect.New(t.In(len(args))).Elem()
		if err := set(v, e.Path[found[1]]); err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	for len(args) < t.NumIn()-1 { // the last are editors of requests
		in := t.In(len(args))
		if in.Kind() == reflect.Pointer { // of the parameters
			v := reflect.New(in.Elem())
			if err := setQuery(v.Elem(), e.Query); err != nil {
				return nil, err
			}
			args = append(args, v)
			continue
		}
		v := reflect.New(in)
		dec := json.NewDecoder(bytes.NewReader(e.Body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(v.Interface()); err != nil {
			return nil, fmt.Errorf("decode the body: %w", err)
		}
		args = append(args, v.Elem())
	}
	return args, nil
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func setQuery(params reflect.Value, query map[string]string) error {
	for name, text := range query {
		found := false
		for i := range params.NumField() {
			tag, _, _ := strings.Cut(params.Type().Field(i).Tag.Get("form"), ",")
			if tag == name {
				found = true
				if err := set(params.Field(i), text); err != nil {
					return err
				}
			}
		}
		if !found {
			return fmt.Errorf("the client has no parameter %s", name)
		}
	}
	return nil
}

// set sets a parameter from its text.
func set(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if decoder, ok := v.Addr().Interface().(interface{ UnmarshalText([]byte) error }); ok {
		return decoder.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		v.SetInt(int64(n))
		return err
	default:
		return fmt.Errorf("no parameter is a %s", v.Type())
	}
	return nil
}

func sameRequest(doer *stub, method, path string) error {
	e, req := doer.example, doer.request
	for name, value := range e.Path {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	if req.Method != method || !strings.HasSuffix(req.URL.Path, path) {
		return fmt.Errorf("requests %s %s, not %s %s", req.Method, req.URL.Path, method, path)
	}
	query := req.URL.Query()
	for name, value := range e.Query {
		if query.Get(name) != value {
			return fmt.Errorf("requests %s=%s, not %s", name, query.Get(name), value)
		}
	}
	if len(query) != len(e.Query) {
		return fmt.Errorf("requests the query %s", req.URL.RawQuery)
	}
	if len(e.Body) == 0 {
		return nil
	}
	return same("body", doer.body, e.Body)
}

// same compares JSON, times by their instant.
func same(what string, got, want []byte) error {
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(want, &b); err != nil {
		return err
	}
	if !reflect.DeepEqual(instants(a), instants(b)) {
		return fmt.Errorf("the %s is\n%s\nnot\n%s", what, got, want)
	}
	return nil
}

func instants(v any) any {
	switch v := v.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UnixNano()
		}
	case []any:
		for i := range v {
			v[i] = instants(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = instants(v[name])
		}
	}
	return v
}

// camel is the name that the generator makes of an operation's id.
func camel(id string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(id, func(r rune) bool { return strings.ContainsRune("._-", r) }) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
