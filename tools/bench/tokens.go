package main

import (
	"context"
	"encoding/json"

	"github.com/tiktoken-go/tokenizer"

	"partnerapi/db"
	"partnerapi/domain"
)

// tokens are what an agent reads, in tokens of the vocabulary o200k_base: the tools of a
// key that may call all of them, and a page of users.
func (b *bench) tokens() []measure {
	return []measure{
		{name: "MCP tools/list, in tokens", bound: atMost(6000), run: b.toolTokens("")},
		{name: "MCP tools/list of all toolsets, in tokens", bound: atMost(12_000), run: b.toolTokens("?toolsets=all")},
		{name: "MCP tools/call of a page of 100 users, in tokens", bound: atMost(6000), run: b.pageTokens},
	}
}

// toolTokens counts the tools that the MCP server lists at an address, on all pages.
func (b *bench) toolTokens(query string) finder {
	return func(ctx context.Context) figure {
		key := must(b.data.db.CreateKey(ctx, db.NewKey{
			Partner: b.data.partner, Name: "agent", Scopes: []domain.Scope{domain.Read, domain.Write},
		}))
		var texts []string
		for params := (object{}); ; {
			page := ask[struct {
				Result struct {
					Tools      json.RawMessage
					NextCursor string
				}
			}](b.service.address, message(key, query, "tools/list", params)).Result
			texts = append(texts, string(page.Tools))
			if page.NextCursor == "" {
				return inTokens(texts...)
			}
			params["cursor"] = page.NextCursor
		}
	}
}

// pageTokens counts a page of the users of the largest client.
func (b *bench) pageTokens(context.Context) figure {
	answer := ask[struct {
		Result struct{ Content []struct{ Text string } }
	}](b.service.address, message(b.keys[0], "", "tools/call", object{
		"name": "users_list", "arguments": object{"client_id": b.data.clients[0], "limit": 100},
	}))
	var texts []string
	for _, part := range answer.Result.Content {
		texts = append(texts, part.Text)
	}
	return inTokens(texts...)
}

// inTokens is how many tokens some texts have. The vocabulary is in the program.
func inTokens(texts ...string) figure {
	codec := must(tokenizer.Get(tokenizer.O200kBase))
	n := 0
	for _, text := range texts {
		n += must(codec.Count(text))
	}
	if n == 0 {
		fail("the answer has no text")
	}
	return counted(n)
}
