package host

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"fermata/engine/tools"
	"fermata/engine/tools/policy"
)

// The limits of a search. Descriptions are not trusted: a tool must not come first in every search because
// its description has very many words.
const (
	MaxFound = 50 // results of a search

	maxQuery     = 1000 // bytes of a query; the rest is ignored
	maxTerms     = 50   // words of a query
	maxWords     = 150  // words of a description
	maxArguments = 150  // words of the names and descriptions of arguments
	maxWord      = 64   // bytes of a word

	weightName        = 3.0 // of a word in the name of the tool
	weightToolset     = 2.0 // in the key or the title of its toolset
	weightDescription = 1.0 // in its description, and in the names of its arguments
	weightArgument    = 0.5 // in a description of an argument

	// The constants k1 and b of BM25: how quickly further occurrences of the same word count less, and how
	// much the length of a text counts.
	saturation = 1.2
	lengthLoss = 0.75
)

// A Found is a tool that a search has found.
type Found struct {
	// Toolset, Title and Class are the key, the title and the class of the tool's toolset.
	Toolset, Title, Class string
	Tool                  tools.Tool
}

// A document has the words of a tool, for searches.
type document struct {
	found  Found
	weight map[string]float64 // of its words
	length float64
}

// Search returns the tools that match a query best, the best first, among those that programs of a principal
// may call. They are ranked by BM25 over their names, descriptions and arguments. If toolset is not empty,
// only tools of this toolset are found. There are at most limit results, and at most MaxFound.
func (h *Host) Search(principal, query, toolset string, limit int) []Found {
	terms := distinct(words(query[:min(len(query), maxQuery)]))
	terms = terms[:min(len(terms), maxTerms)]
	g, release := h.now()
	defer release()
	rights := g.policy.Rights(principal)
	var documents []document
	total := 0.0
	for _, d := range g.documents() {
		if (toolset == "" || toolset == d.found.Toolset) && rights.Tool(policy.Name{Toolset: d.found.Toolset, Tool: d.found.Tool.Name}) == nil {
			documents = append(documents, d)
			total += d.length
		}
	}
	score := make([]float64, len(documents))
	for _, term := range terms {
		having := 0.0
		for _, d := range documents {
			if d.weight[term] > 0 {
				having++
			}
		}
		rarity := math.Log(1 + (float64(len(documents))-having+0.5)/(having+0.5))
		for i, d := range documents {
			w := d.weight[term]
			norm := saturation * (1 - lengthLoss + lengthLoss*d.length*float64(len(documents))/total)
			score[i] += rarity * w * (saturation + 1) / (w + norm)
		}
	}
	order := make([]int, 0, len(documents))
	for i := range documents {
		if score[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	found := []Found{}
	for _, i := range order[:max(0, min(len(order), limit, MaxFound))] {
		found = append(found, documents[i].found)
	}
	return found
}

// documents returns the documents of all tools that programs may call. The tools of a toolset do not change
// once they are known, so their documents are made only once.
func (g *generation) documents() []document {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []document
	for _, t := range g.tools.Toolsets() {
		described, found := g.described[t.Key]
		if !found && len(t.Tools) > 0 {
			for _, tool := range forPrograms(t).Tools {
				described = append(described, describe(t, tool))
			}
			g.described[t.Key] = described
		}
		all = append(all, described...)
	}
	return all
}

// describe returns the document of a tool.
func describe(t tools.Toolset, tool tools.Tool) document {
	d := document{found: Found{t.Key, t.Title, t.Class, tool}, weight: map[string]float64{}}
	d.add(weightName, words(tool.Name))
	d.add(weightToolset, distinct(words(t.Key+" "+t.Title)))
	described := words(tool.Description)
	d.add(weightDescription, described[:min(len(described), maxWords)])
	names, texts := arguments(tool.Input)
	d.add(weightDescription, names[:min(len(names), maxArguments)])
	d.add(weightArgument, texts[:min(len(texts), maxArguments)])
	return d
}

// add adds words.
func (d *document) add(weight float64, words []string) {
	for _, w := range words {
		d.weight[w] += weight
		d.length += weight
	}
}

// arguments returns the words of the names and of the descriptions of the arguments that a schema has.
func arguments(input json.RawMessage) (names, texts []string) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(input, &schema) // A schema that cannot be read has no words.
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		names = append(names, words(name)...)
		var property struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(schema.Properties[name], &property) == nil {
			texts = append(texts, words(property.Description)...)
		}
		if len(names) > maxArguments && len(texts) > maxArguments {
			break
		}
	}
	return names, texts
}

// words returns the words of a text in lower case, without the s of the plural. Names are split into words:
// getHTTPPet_by-id has get, http, pet, by and id.
func words(text string) []string {
	var list []string
	runes := []rune(text)
	for begin := 0; begin < len(runes); {
		if !isOfWord(runes[begin]) {
			begin++
			continue
		}
		end := begin + 1
		for end < len(runes) && isOfWord(runes[end]) && !begins(runes, end) {
			end++
		}
		word := strings.ToLower(string(runes[begin:end]))
		if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
			word = word[:len(word)-1]
		}
		if len(word) <= maxWord {
			list = append(list, word)
		}
		begin = end
	}
	return list
}

func isOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// begins reports whether a word begins at a letter in the middle of a name.
func begins(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// distinct returns each word once, in the order of the first occurrences.
func distinct(words []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(words, func(w string) bool {
		again := seen[w]
		seen[w] = true
		return again
	})
}
