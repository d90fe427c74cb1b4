package mcp

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tests/harness"
)

// toolsetsFile has one toolset, whose tools answer with what they got.
const toolsetsFile = `
toolsets:
  shop:
    title: Shop
    description: Things to buy.
    private: true
    http:
      base_url: URL
      tools:
        - {name: find_article, description: Looks for articles in the catalogue., method: POST, path: /echo, parameters: {type: object, properties: {word: {type: string}}, required: [word]}}
        - {name: pay, description: Pays an invoice., method: POST, path: /echo, approval: always, parameters: {type: object, properties: {amount: {type: integer}}}}
`

// TestToolsets looks for tools and calls them in programs.
func TestToolsets(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		path := harness.WriteToolsets(t, harness.NewUpstream(t), toolsetsFile)
		c := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": path}).Alice()
		session := connect(t, c, nil)
		if r := run(t, session, "search_tools", nil); !strings.Contains(r.Text, `"toolset":"shop"`) || !strings.Contains(r.Text, `"tools":2`) {
			t.Errorf("the toolsets: %s", r.Text)
		}
		if r := run(t, session, "search_tools", map[string]any{"query": "catalogue"}); !strings.Contains(r.Text, "shop.find_article") || strings.Contains(r.Text, "shop.pay") {
			t.Errorf("a search: %s", r.Text)
		}
		if r := run(t, session, "search_tools", map[string]any{"query": "invoice", "detail": "full"}); !strings.Contains(r.Text, "Shop.pay(") {
			t.Errorf("a search for signatures: %s", r.Text)
		}
		source, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "fermata://toolsets/shop.pyi"})
		if err != nil || !strings.Contains(source.Contents[0].Text, "class Shop") {
			t.Errorf("the source: %+v, %v", source, err)
		}
		if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "fermata://toolsets/other.pyi"}); err == nil {
			t.Error("a toolset that is not there has a source")
		}
		r := run(t, session, "run_program", map[string]any{"code": "from fermata_tools.shop import Shop\nShop.find_article(word='hat')", "toolsets": []string{"shop"}})
		if r.Failed || !strings.Contains(string(r.Value), "hat") || len(r.Calls) != 1 || r.Calls[0].Tool != "shop.find_article" || r.Calls[0].Status != "completed" {
			t.Errorf("a program that calls a tool: %+v", r)
		}
		if r := run(t, session, "run_program", map[string]any{"code": "1", "toolsets": []string{"nosuch"}}); !r.Failed || !strings.Contains(r.Text, "nosuch") {
			t.Errorf("a toolset that is not there: %+v", r)
		}
		cannot := run(t, session, "run_program", map[string]any{"code": "from fermata_tools.shop import Shop\nShop.pay(amount=3)", "toolsets": []string{"shop.pay"}})
		if !cannot.Failed || !strings.Contains(cannot.Error, "needs approval and the client cannot ask for it") {
			t.Errorf("a client that cannot ask: %+v", cannot)
		}
		for _, approve := range []bool{true, false} {
			asked := make(chan string, 1)
			person := connect(t, c, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked <- r.Params.Message
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": approve, "reason": "as I like"}}, nil
			}})
			r := run(t, person, "run_program", map[string]any{"code": "from fermata_tools.shop import Shop\nShop.pay(amount=3)", "toolsets": []string{"shop.pay"}})
			if len(asked) != 1 || !strings.Contains(<-asked, `shop.pay with this input:`) {
				t.Errorf("nobody was asked: %+v", r)
			}
			if approve && r.Status != "completed" || !approve && !strings.Contains(r.Error, "refused: as I like") {
				t.Errorf("approve %v: %+v", approve, r)
			}
		}
	})
}
