package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/v2/op/mcp"
)

// publishedTool is a tool as a client reads it from tools/list.
type publishedTool struct {
	Name, Description string
	InputSchema       map[string]any
}

// publishedTools returns all tools as a client without a server session reads them; query is added to the address.
func publishedTools(t *testing.T, query string) []publishedTool {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, mcp.Path+query, strings.NewReader(listTools))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", "pk_demo_key")
	answer := httptest.NewRecorder()
	withoutDatabase(t).ServeHTTP(answer, r)
	var list struct {
		Result struct {
			Tools      []publishedTool
			NextCursor string
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Result.Tools) == 0 || list.Result.NextCursor != "" {
		t.Fatalf("%v, %d tools: %.300s", err, len(list.Result.Tools), answer.Body)
	}
	return list.Result.Tools
}

// vendor is what the API of a vendor of models accepts as a function, as published.
type vendor struct {
	name    string
	sources []string
	// toolName matches the names of functions; property, if set, those of properties at every level.
	toolName, property *regexp.Regexp
	description        int // the largest length of a function's description; 0 for no limit
	tools              int // the largest number of functions in a request; 0 for no limit
	// keywords are those that a schema may have; nil for all but the rejected ones.
	keywords, rejected []string
	// rejectedAtTop are the keywords that the schema of all arguments may not have.
	rejectedAtTop []string
	formats       []string // of a string; nil for all
	oneType       bool     // a type is one name, and no list of names
	// wantsProperties says that an object has properties, wantsItems that an array has items.
	wantsProperties, wantsItems bool
	stringEnums                 bool // an enum has texts only, none of them empty
	closed                      bool // an object allows no additional properties
	depth, properties, enums    int  // the largest nesting of objects, and numbers in a schema; 0 for no limit
	// prepare, if set, is what the vendor's own SDK does to a schema before it sends it.
	prepare func(map[string]any) map[string]any
}

var (
	composition = []string{"oneOf", "anyOf", "allOf"}
	references  = []string{"$ref", "$defs", "$dynamicRef", "definitions"}
)

// vendors has the restrictions that the vendors publish, and those that their services state when they reject a tool.
var vendors = []vendor{
	{
		name: "OpenAI functions",
		sources: []string{
			"https://platform.openai.com/docs/api-reference/chat/create#chat_create-tools", // names of at most 64
			"https://platform.openai.com/docs/guides/function-calling",                     // 128 functions
			// "object schema missing properties"
			"https://github.com/openai/openai-agents-python/issues/449",
			// "array schema missing items"
			"https://github.com/bnb-chain/bnbchain-mcp/issues/68",
		},
		toolName: regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), description: 1024, tools: 128,
		rejectedAtTop: append([]string{"enum", "not"}, composition...), wantsProperties: true, wantsItems: true,
	},
	{
		name: "OpenAI functions, strict",
		sources: []string{
			// The keywords by type, closed objects of which all properties are required, nesting and sizes.
			"https://platform.openai.com/docs/guides/structured-outputs#supported-schemas",
			"https://platform.openai.com/docs/guides/function-calling#strict-mode",
		},
		toolName: regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), description: 1024, tools: 128,
		keywords: []string{
			"type", "description", "title", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
			"$ref", "$defs", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
			"minItems", "maxItems",
		},
		rejectedAtTop:   append([]string{"enum", "not"}, composition...),
		formats:         []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		wantsProperties: true, wantsItems: true, closed: true, depth: 5, properties: 100, enums: 500, prepare: makeStrict,
	},
	{
		name: "Gemini function declarations",
		sources: []string{
			"https://ai.google.dev/api/caching#FunctionDeclaration", // names; a declaration in JSON Schema instead of Schema
			"https://ai.google.dev/api/caching#Schema",              // the keywords, one type, enums of texts
			// "only 'enum' and 'date-time' are supported for STRING type"
			"https://github.com/google-gemini/gemini-cli/issues/5450",
		},
		toolName: regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,62}$`), tools: 128,
		keywords: []string{
			"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
			"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
			"default", "items", "minimum", "maximum",
		},
		formats: []string{"enum", "date-time"}, oneType: true, wantsItems: true, stringEnums: true, prepare: withoutClosing,
	},
	{
		name: "Anthropic tools",
		sources: []string{
			"https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools", // names
			// No references, nothing composed at the top, and the names of properties.
			"https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes",
			"https://github.com/anthropics/claude-code/issues/5319",
		},
		toolName: regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), property: regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
		rejected: references, rejectedAtTop: composition,
	},
}

// makeStrict returns a schema as OpenAI's SDKs make it strict: every property is required, and those that were not
// allow null.
func makeStrict(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	if properties, ok := schema["properties"].(map[string]any); ok {
		required, _ := schema["required"].([]any)
		own, names := map[string]any{}, []any{}
		for name, property := range properties {
			strict := makeStrict(property.(map[string]any))
			if !slices.Contains(required, any(name)) {
				strict = map[string]any{"anyOf": []any{strict, map[string]any{"type": "null"}}}
			}
			own[name], names = strict, append(names, name)
		}
		out["properties"], out["required"] = own, names
	}
	if items, ok := schema["items"].(map[string]any); ok {
		out["items"] = makeStrict(items)
	}
	return out
}

// withoutClosing returns a schema without additionalProperties, which Google's SDKs drop.
func withoutClosing(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	delete(out, "additionalProperties")
	if properties, ok := out["properties"].(map[string]any); ok {
		own := map[string]any{}
		for name, property := range properties {
			own[name] = withoutClosing(property.(map[string]any))
		}
		out["properties"] = own
	}
	if items, ok := out["items"].(map[string]any); ok {
		out["items"] = withoutClosing(items)
	}
	return out
}

// vendorCheck checks one schema against a vendor's restrictions, and counts in it.
type vendorCheck struct {
	vendor
	fail              func(format string, args ...any)
	properties, enums int
}

// check checks a schema at a path; depth is the number of objects around it.
func (c *vendorCheck) check(path string, schema map[string]any, depth int) {
	for keyword := range schema {
		if c.keywords != nil && !slices.Contains(c.keywords, keyword) || slices.Contains(c.vendor.rejected, keyword) {
			c.fail("%s has the keyword %s", path, keyword)
		}
	}
	kind, isOne := schema["type"].(string)
	if c.oneType && !isOne {
		c.fail("%s has the type %v", path, schema["type"])
	}
	if format, ok := schema["format"].(string); ok && c.formats != nil && !slices.Contains(c.formats, format) {
		c.fail("%s has the format %s", path, format)
	}
	if list, ok := schema["enum"].([]any); ok {
		c.enums += len(list)
		for _, value := range list {
			if text, ok := value.(string); c.stringEnums && (!ok || text == "") {
				c.fail("%s has the enum value %v", path, value)
			}
		}
	}
	if kind == "object" {
		c.checkObject(path, schema, depth+1)
	}
	items, hasItems := schema["items"].(map[string]any)
	if kind == "array" && c.wantsItems && !hasItems {
		c.fail("%s has no items", path)
	}
	if hasItems {
		c.check(path+"[]", items, depth)
	}
	parts, _ := schema["anyOf"].([]any)
	for i, part := range parts {
		c.check(fmt.Sprintf("%s.anyOf[%d]", path, i), part.(map[string]any), depth)
	}
}

// checkObject checks the schema of an object; depth counts it.
func (c *vendorCheck) checkObject(path string, schema map[string]any, depth int) {
	properties, ok := schema["properties"].(map[string]any)
	if c.wantsProperties && !ok {
		c.fail("%s has no properties", path)
	}
	if c.closed && schema["additionalProperties"] != false {
		c.fail("%s allows additional properties", path)
	}
	if c.depth > 0 && depth > c.depth {
		c.fail("%s is nested %d deep", path, depth)
	}
	required, _ := schema["required"].([]any)
	for name, property := range properties {
		c.checkName(path, name)
		if c.closed && !slices.Contains(required, any(name)) {
			c.fail("%s.%s is not required", path, name)
		}
		c.check(path+"."+name, property.(map[string]any), depth)
	}
	c.properties += len(properties)
}

func (c *vendorCheck) checkName(path, name string) {
	if c.property != nil && !c.property.MatchString(name) {
		c.fail("%s has the property %q", path, name)
	}
}

// TestVendors verifies that every tool satisfies what the vendors of models accept as a function, so that no agent loses
// a whole request to one of them.
func TestVendors(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"?toolsets=all", everything} {
		tools := publishedTools(t, query)
		for _, v := range vendors {
			if v.tools > 0 && len(tools) > v.tools {
				t.Errorf("%s: %d tools, want at most %d (%s)", v.name, len(tools), v.tools, v.sources[0])
			}
			for _, tool := range tools {
				fail := func(format string, args ...any) {
					t.Helper()
					t.Errorf("%s: %s: "+format+" (see %s)", append(append([]any{v.name, tool.Name}, args...), strings.Join(v.sources, " "))...)
				}
				if !v.toolName.MatchString(tool.Name) {
					fail("the name does not match %s", v.toolName)
				}
				if v.description > 0 && len(tool.Description) > v.description {
					fail("the description has %d characters", len(tool.Description))
				}
				for _, keyword := range v.rejectedAtTop {
					if tool.InputSchema[keyword] != nil {
						fail("the top of the schema has %s", keyword)
					}
				}
				schema := tool.InputSchema
				if v.prepare != nil {
					schema = v.prepare(schema)
				}
				if schema["type"] != "object" {
					fail("the arguments have the type %v", schema["type"])
				}
				c := &vendorCheck{vendor: v, fail: fail}
				c.check("arguments", schema, 0)
				if v.properties > 0 && c.properties > v.properties || v.enums > 0 && c.enums > v.enums {
					fail("the schema has %d properties and %d enum values", c.properties, c.enums)
				}
			}
		}
	}
}

// TestSchemasForAgents verifies what holds for every schema of arguments beyond the vendors' rules: properties, one type
// each, no format but date-time, and no word about null, which counts as absent.
func TestSchemasForAgents(t *testing.T) {
	t.Parallel()
	for _, tool := range publishedTools(t, "?toolsets=all") {
		var walk func(path string, schema map[string]any)
		walk = func(path string, schema map[string]any) {
			kind, isOne := schema["type"].(string)
			properties, hasProperties := schema["properties"].(map[string]any)
			if !isOne || kind == "object" && !hasProperties {
				t.Errorf("%s: %s has the type %v and properties %v", tool.Name, path, schema["type"], hasProperties)
			}
			if format := schema["format"]; format != nil && format != "date-time" {
				t.Errorf("%s: %s has the format %v", tool.Name, path, format)
			}
			if text, _ := schema["description"].(string); regexp.MustCompile(`(?i)\bnull`).MatchString(text) {
				t.Errorf("%s: %s speaks of null: %s", tool.Name, path, text)
			}
			for name, property := range properties {
				walk(path+"."+name, property.(map[string]any))
			}
			if items, ok := schema["items"].(map[string]any); ok {
				walk(path+"[]", items)
			}
		}
		walk("arguments", tool.InputSchema)
	}
}
