package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
)

// prompt is a task that a person may give to an agent. Text names the tools to use, and contains {argument} for
// each argument, or {find client} for one that is a client's name or id.
type prompt struct {
	sdk.Prompt
	text string
}

// prompts are the tasks of people who run the training of many clients.
var prompts = []prompt{
	{
		sdk.Prompt{
			Name: "remind_overdue", Title: "Remind users of overdue courses",
			Description: "Find the riskiest clients and remind their users with overdue courses.",
			Arguments:   []*sdk.PromptArgument{{Name: "clients", Description: "Number of clients, such as 3.", Required: true}},
		},
		"Find the {clients} clients with the lowest average risk score (clients_list with sort=risk_score, because lower " +
			"scores mean higher risk). For each, list the users with overdue courses (users_list with overdue=true), show me their names and how " +
			"many courses are overdue, and wait for my confirmation. Then send reminders with training_remind, once per " +
			"client, and tell me how many reminders were requested and which users were skipped, with the reason.",
	},
	{
		sdk.Prompt{
			Name: "review_phishing", Title: "Review a client's phishing simulations",
			Description: "Summarize the outcomes of a client's phishing simulations and find the users who need help.",
			Arguments:   []*sdk.PromptArgument{{Name: "client", Description: "The client's name or ID.", Required: true}},
		},
		"{find client} Read phishing_summary, and phishing_results_list with status=clicked and " +
			"status=credentials_submitted for the last 90 days. Tell me how the click and report rates differ between 30, 90 " +
			"and 365 days, which users fell for more than one email, and which course from courses_list would help them. " +
			"Do not change anything.",
	},
	{
		sdk.Prompt{
			Name: "explain_risk", Title: "Explain a client's risk score",
			Description: "Explain the factors of a client's risk score and what would raise it most.",
			Arguments:   []*sdk.PromptArgument{{Name: "client", Description: "The client's name or ID.", Required: true}},
		},
		"{find client} Read clients_risk. Scores go from 0 to 1000; higher is safer. Tell me the grade, how the score changed " +
			"over its history, and by how much its top factors lower it. Then read the five riskiest users (users_list with " +
			"sort=risk_score and limit=5) and users_risk for each of them, and tell me what would raise the client's score " +
			"most. Do not change anything.",
	},
}

// addPrompts adds the prompts, except those that name a tool which the rights do not allow. In a prompt's text, {x} is
// replaced with the argument x, and {find x} with a sentence on how to find the client with the name or id x.
func (s *Server) addPrompts(server *sdk.Server, r rights) {
	isForbidden := func(word string) bool { t := s.byName[word]; return t != nil && !r.allow(t.operation.Meta()) }
	for _, p := range prompts {
		if slices.ContainsFunc(strings.FieldsFunc(p.text, isToolNameDelimiter), isForbidden) {
			continue
		}
		server.AddPrompt(&p.Prompt, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text := p.text
			for _, argument := range p.Arguments {
				given := domain.Cut(domain.Visible(r.Params.Arguments[argument.Name]), maxArgument)
				if given == "" && argument.Required {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the argument " + argument.Name + " is required"}
				}
				text = strings.ReplaceAll(text, "{find "+argument.Name+"}", findClientPrompt(given))
				text = strings.ReplaceAll(text, "{"+argument.Name+"}", given)
			}
			return &sdk.GetPromptResult{
				Description: p.Description,
				Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
			}, nil
		})
	}
}

// maxArgument is the maximum length of an argument in the text of a prompt, in characters; longer ones are cut.
const maxArgument = 500

// findClientPrompt returns the sentence that tells an agent how to find a client by its name or id. The parameter q of
// clients_list matches names only, so a client with an id is read by clients_get.
func findClientPrompt(nameOrID string) string {
	if id := strings.TrimSpace(nameOrID); strings.HasPrefix(id, clientPrefix) {
		return "Use the client with the client_id " + id + " (clients_get)."
	}
	return "Find the client named " + nameOrID + " (clients_list with q). If several match, ask me which one to use."
}

// clientPrefix is the prefix of client ids.
const clientPrefix = "cli_"

// isToolNameDelimiter reports whether a character cannot be part of a tool's name.
func isToolNameDelimiter(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }
