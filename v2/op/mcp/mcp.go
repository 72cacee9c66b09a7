// Package mcp serves the operations to agents by the Model Context Protocol: a tool for each operation of a set, made
// from its declaration, resources and prompts.
//
// A tool call is converted to the HTTP request of its operation, which the service's own handler answers in process. So
// its checks, budgets, releases, audit trail, idempotency and errors are those of the operation by construction.
//
// The server stores no sessions. A session is an id that is signed for its key with a secret that replicas share: every
// replica serves every session, and a session does not expire before its key (decisions 12).
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	lru "github.com/hashicorp/golang-lru/v2"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Path is the server's path.
const Path = "/mcp"

// Since is the first release with the server.
const Since = op.V2_3

// Config holds the dependencies and settings of a Server.
type Config struct {
	// Operations are all operations of the service; Release serves some of them.
	Operations []op.Declaration
	Release    op.Release
	// Document is the OpenAPI document of the release, from which schemas are taken.
	Document *openapi3.T
	// Prefix is the path prefix of the operations. Handler serves their requests.
	Prefix  string
	Handler http.Handler
	// Secret signs the ids of sessions; replicas share it.
	Secret []byte
	// ReadOnly lists only tools that read, and refuses others, in every session.
	ReadOnly bool
	// Origins are the origins of pages whose scripts may use the server; see the functions Origins and ParseOrigin.
	Origins []string
	// GuideNames are the names of the guides in display order. Guide returns the text of one.
	GuideNames []string
	Guide      func(name string) ([]byte, error)
	// SearchGuides returns up to limit passages of the guides that match a query, the best first. If it is nil, there is no
	// tool that searches them.
	SearchGuides func(query string, limit int) ([]Passage, error)
	// Reach returns NotFound for a client or a user, unless zero, to which ctx's caller has no access.
	Reach func(ctx context.Context, client domain.ClientID, user domain.UserID) error
	// Count counts a request of ctx's caller that runs no operation. It fails if the key's budget is used up.
	Count func(ctx context.Context) error
	// CountMessage does so for a message, against a separate budget.
	CountMessage func(ctx context.Context) error
	// Parse runs work, which parses a message of size bytes. It bounds how many large messages are parsed at a time.
	Parse func(ctx context.Context, size int, work func() error) error
	// Envelope returns the status and the body of the service's answer to a request that failed with err.
	Envelope func(r *http.Request, err error, requestID string) (status int, body []byte)
	// Version is the program's.
	Version string
	Log     *slog.Logger
}

// Server serves one release. It is safe for concurrent use.
type Server struct {
	Config
	byName        map[string]*tool
	guides        []guide
	all, defaults names
	servers       map[rights]*sdk.Server
	handler       http.Handler // the SDK's
	signer        sessionSigner
	ended         *lru.Cache[string, struct{}] // ids of sessions that their callers ended
	origins       map[string]bool
}

// rememberedEnds is the capacity of Server.ended, at some 100 bytes for each session.
const rememberedEnds = 10_000

// New returns the server. It fails for mistakes in the operations' declarations, such as two arguments of the same
// name, and for unreadable guides.
func New(c Config) (*Server, error) {
	s := &Server{
		Config: c, byName: map[string]*tool{}, all: names{}, defaults: names{}, servers: map[rights]*sdk.Server{},
		origins: map[string]bool{}, signer: newSigner(c.Secret),
	}
	for _, origin := range c.Origins {
		s.origins[origin] = true
	}

	ended, err := lru.New[string, struct{}](rememberedEnds)
	if err != nil {
		return nil, err
	}
	s.ended = ended
	if err := s.addTools(); err != nil {
		return nil, err
	}
	if err := s.addGuides(); err != nil {
		return nil, err
	}

	for bits := range 16 { // a server for each combination of rights
		r := rights{read: bits&1 > 0, write: bits&2 > 0, allClients: bits&4 > 0, readOnly: bits&8 > 0}
		s.servers[r] = s.serverOf(r)
	}
	s.handler = sdk.NewStreamableHTTPHandler(
		func(r *http.Request) *sdk.Server { return s.servers[messageOf(r.Context()).view.rights] },
		// The edge checks the origin itself (CheckOrigin), which works behind a proxy too. It bounds bodies: -1 is no limit.
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1},
	)
	return s, nil
}

// addTools adds a tool for every operation of the release, and the toolsets: all resources, and the default ones.
func (s *Server) addTools() error {
	described := operationsOf(s.Document)
	for _, o := range s.Operations {
		if o.Meta().Since > s.Release {
			continue
		}
		t, err := newTool(o, described[o.Meta().ID])
		if err != nil {
			return fmt.Errorf("tool of operation %s: %w", o.Meta().ID, err)
		}
		if s.byName[t.Name] != nil {
			return fmt.Errorf("two tools are named %s", t.Name)
		}
		s.byName[t.Name] = t
		s.all[o.Meta().Resource()] = true
	}
	for _, name := range DefaultToolsets {
		s.defaults[name] = true
	}
	return s.addGuidesTool()
}

// instructions state what all tools have in common, so that no tool repeats it.
const instructions = "Tools of the partner API of a security awareness training service: a partner's client organizations, " +
	"their users, risk and training. IDs are opaque strings; take them from lists. A list tool returns a page of at most " +
	"limit rows (default 100). For the next page, call the tool again with the same arguments and cursor set to next_cursor. " +
	"null, or an empty string for an optional argument, counts as omitted. " +
	"If tools have no output schemas, a page is text with one line per row and tabs between columns; fields selects " +
	"other columns, such as [\"email\",\"risk.score\"], and [\"*\"] returns rows in JSON. Risk scores range from 0 to 1000; " +
	"lower scores mean higher risk. An error is a JSON object with a code, a message and the names of any wrong arguments. Set " +
	"idempotency_key to any string so that you can repeat a call within 24 hours without performing it twice. For " +
	"more tools, add ?toolsets=all, or the names of toolsets, to the server's URL."

// guideInstructions follow instructions if there is a search of the guides.
const guideInstructions = " " + guidesTool + " searches the API's guides. Use it when you write programs that call the API or receive its webhooks."

// serverOf returns the SDK server for callers with the rights.
func (s *Server) serverOf(r rights) *sdk.Server {
	texts := instructions
	if s.byName[guidesTool] != nil {
		texts += guideInstructions
	}
	server := sdk.NewServer(
		&sdk.Implementation{Name: "partnerapi", Title: "Partner API", Version: s.Version},
		&sdk.ServerOptions{
			Instructions: texts, PageSize: toolsPage,
			// The lists depend on the key.
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
			Capabilities: &sdk.ServerCapabilities{
				Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{},
			},
		},
	)
	for _, t := range s.byName {
		server.AddTool(t.withoutSchemas, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if t.operation == nil {
				return s.searchGuides(ctx, t, r.Params.Arguments)
			}
			return s.call(ctx, t, r.Params.Arguments)
		})
	}
	s.addResources(server, r)
	s.addPrompts(server, r)
	server.AddReceivingMiddleware(s.handle)
	return server
}

// toolsPage is the page size of the lists. All tools fit on one page, as many agents read no other.
const toolsPage = 100
