package config_test

import (
	"errors"
	"strings"
	"testing"

	"fermata/engine/tools/config"
)

// A mistaken is a file with one mistake or a few, and the text of the error. HTTP and TOOL stand for a correct
// source and a correct tool.
type mistaken struct{ name, file, want string }

var mistakes = []mistaken{
	{"unknown member at the top", "toolset: {}", `t.yaml:1: toolset: is not known here; did you mean toolsets?`},
	{"unknown member", "toolsets: {a: {titel: A, http: HTTP}}", `t.yaml:1: toolsets.a.titel: is not known here; did you mean title?`},
	{"unknown member that is like none", "toolsets: {a: {color: A, http: HTTP}}", `t.yaml:1: toolsets.a.color: is not known here; known are title, class, description, concurrency, private, proxy, validate, shared, trusted, unmasked, http, openapi, mcp`},
	{"unknown member of http", `toolsets: {a: {http: {base_uri: "http://a", base_url: "http://a", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_uri: is not known here; did you mean base_url?`},
	{"unknown member of a tool", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, hide: true}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].hide: is not known here; known are name, description, method, path, parameters, result, envelope, cost, idempotent, approval, callers, lane`},
	{"unknown member of a policy", "toolsets: {a: {http: HTTP}}\npolicies: {p: {deny: [a]}}", `t.yaml:2: policies.p.deny: is not known here; known are allow, block, mode, max_cost, max_day_cost`},
	{"unprintable member", `toolsets: {a: {"x\u202e\e[1m": 1, http: HTTP}}`, `t.yaml:1: toolsets.a."x\u202e\x1b[1m": is not known here; known are title, class, description, concurrency, private, proxy, validate, shared, trusted, unmasked, http, openapi, mcp`},
	{"twin members", "toolsets:\n  a:\n    title: A\n    title: B\n    http: HTTP", `t.yaml:4: toolsets.a.title: is already in line 3; leave one of them out`},
	{"twin toolsets", "toolsets:\n  a: {http: HTTP}\n  a: {http: HTTP}", `t.yaml:3: toolsets.a: is already in line 2; leave one of them out`},
	{"no toolsets", "policies: {}", `t.yaml: names no toolset; write at least one below toolsets`},
	{"empty file", "# nothing", `t.yaml: is empty; write at least one toolset below toolsets`},
	{"two documents", "toolsets: {a: {http: HTTP}}\n---\ntoolsets: {}", `t.yaml:2: has a second document; put everything into one, without ---`},
	{"no YAML", "toolsets:\n  a: {http: HTTP}\n  b: [\n", `t.yaml:3: is no YAML: did not find expected node content`},
	{"a tab", "toolsets:\n\ta: {http: HTTP}", `t.yaml:2: is no YAML: found character that cannot start any token; indent with blanks, not with tabs, and put quotes around texts that begin with a special character`},
	{"a NUL", "toolsets:\n  a: \x00", `t.yaml:2: has a character NUL; is it a text file?`},
	{"an empty toolset", "toolsets: {a: {}}", `t.yaml:1: toolsets.a: has no source; write one of http, openapi and mcp`},
	{"an empty server", "toolsets: {a: {mcp: {}}}", `t.yaml:1: toolsets.a.mcp: has no server; write url or command`},
	{"not UTF-8", "toolsets:\n  a: \xff", `t.yaml:2: is not UTF-8; save it as UTF-8`},
	{"a list at the top", "- a", `t.yaml:1: must be a map, not a list`},
	{"anchor", "toolsets:\n  a: &x {http: HTTP}\n  b: *x", `t.yaml:2: toolsets.a: anchors (&) and aliases (*) are not allowed; write the text out, or put quotes around it
t.yaml:3: toolsets.b: anchors (&) and aliases (*) are not allowed; write the text out, or put quotes around it`},
	{"merge key", "toolsets:\n  a: {<<: {title: A}, http: HTTP}", `t.yaml:2: toolsets.a: the merge key << is not allowed; write the members out`},
	{"tag", "toolsets:\n  a: {title: !include b, http: HTTP}", `t.yaml:2: toolsets.a.title: the tag "!include" is not allowed; leave it out`},
	{"name that is no text", "toolsets:\n  a: {http: {base_url: \"http://a\", headers: {1: a}, tools: [TOOL]}}", `t.yaml:2: toolsets.a.http.headers: the name "1" is no text; put quotes around it`},
	{"name that is a list", "toolsets:\n  ? [a]\n  : {http: HTTP}", `t.yaml:2: toolsets: has a name that is a list; names must be texts`},
	{"capital key", "toolsets: {Weather: {http: HTTP}}", `t.yaml:1: toolsets.Weather: the key of a toolset must begin with a small letter and have at most 64 small letters, digits and underscores`},
	{"long key", "toolsets: {aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {http: HTTP}}", `t.yaml:1: toolsets.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: the key of a toolset must begin with a small letter and have at most 64 small letters, digits and underscores`},
	{"keyword as key", "toolsets: {import: {http: HTTP}}", `t.yaml:1: toolsets.import: import is a keyword of Python, so that no program could import the toolset; take another key`},
	{"toolset that is empty", "toolsets:\n  a:", `t.yaml:2: toolsets.a: must be a map, not empty`},
	{"no source", "toolsets: {a: {title: A}}", `t.yaml:1: toolsets.a: has no source; write one of http, openapi and mcp`},
	{"two sources", `toolsets: {a: {http: HTTP, mcp: {url: "http://a"}}}`, `t.yaml:1: toolsets.a: has the sources http and mcp; a toolset has one, so make several toolsets of it`},
	{"empty title", `toolsets: {a: {title: " ", http: HTTP}}`, `t.yaml:1: toolsets.a.title: must not be empty`},
	{"title that is a number", "toolsets: {a: {title: 5, http: HTTP}}", `t.yaml:1: toolsets.a.title: must be a text; put quotes around it`},
	{"title of two lines", `toolsets: {a: {title: "a\nb", http: HTTP}}`, `t.yaml:1: toolsets.a.title: must not contain line ends or other control characters`},
	{"title that is missing", "toolsets: {a: {title: , http: HTTP}}", `t.yaml:1: toolsets.a.title: must be a text, not empty`},
	{"class", "toolsets: {a: {class: 3D, http: HTTP}}", `t.yaml:1: toolsets.a.class: must be the name of a class in Python: a letter, then at most 63 letters, digits and underscores, and no keyword`},
	{"class that is a keyword", "toolsets: {none: {http: HTTP}}", `t.yaml:1: toolsets.none: neither the title nor the key makes the name of a class; give it one by class`},
	{"class that is taken", "toolsets: {a: {class: ToolExecutionError, http: HTTP}}", `t.yaml:1: toolsets.a.class: the class ToolExecutionError is one that every program has; give the toolset another one by class`},
	{"twin classes", "toolsets:\n  a_b: {http: HTTP}\n  b: {title: a b, http: HTTP}", `t.yaml:3: toolsets.b: its class AB is that of the toolset in t.yaml:2; give one of them another one by class`},
	{"concurrency", "toolsets: {a: {concurrency: 0, http: HTTP}}", `t.yaml:1: toolsets.a.concurrency: must be a whole number from 1 to 256`},
	{"concurrency that is a text", `toolsets: {a: {concurrency: "4", http: HTTP}}`, `t.yaml:1: toolsets.a.concurrency: must be a whole number from 1 to 256`},
	{"flag", "toolsets: {a: {private: yes, http: HTTP}}", `t.yaml:1: toolsets.a.private: must be true or false`},
	{"shared for HTTP", "toolsets: {a: {shared: true, http: HTTP}}", `t.yaml:1: toolsets.a.shared: is for MCP servers only; leave it out`},
	{"trusted for a URL", `toolsets: {a: {trusted: true, mcp: {url: "http://a"}}}`, `t.yaml:1: toolsets.a.trusted: is for MCP servers with a command only; leave it out`},
	{"proxy", `toolsets: {a: {proxy: "proxy:80", http: HTTP}}`, `t.yaml:1: toolsets.a.proxy: must begin with http, https or socks5, :// and a host`},
	{"proxy with a secret", `toolsets: {a: {proxy: "http://${WEATHER_KEY}@proxy", http: HTTP}}`, `t.yaml:1: toolsets.a.proxy: ${} is only replaced in headers, env, url and base_url`},
	{"no base_url", "toolsets: {a: {http: {tools: [TOOL]}}}", `t.yaml:1: toolsets.a.http: base_url is missing; write the URL where the paths of the tools begin`},
	{"no tools", `toolsets: {a: {http: {base_url: "http://a"}}}`, `t.yaml:1: toolsets.a.http: tools is missing; write a list with at least one tool`},
	{"empty tools", `toolsets: {a: {http: {base_url: "http://a", tools: []}}}`, `t.yaml:1: toolsets.a.http.tools: is empty; write at least one tool`},
	{"tools that are a map", `toolsets: {a: {http: {base_url: "http://a", tools: {a: TOOL}}}}`, `t.yaml:1: toolsets.a.http.tools: must be a list, not a map`},
	{"base_url that is none", `toolsets: {a: {http: {base_url: "http://a b", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: is not a URL; it looks like https://api.example.com/v1`},
	{"base_url without a scheme", "toolsets: {a: {http: {base_url: api.example.com, tools: [TOOL]}}}", `t.yaml:1: toolsets.a.http.base_url: must begin with http or https, :// and a host`},
	{"base_url of another scheme", `toolsets: {a: {http: {base_url: "file:///etc/passwd", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: must begin with http or https, :// and a host`},
	{"base_url with a password", `toolsets: {a: {http: {base_url: "https://u:geheim@a", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: must not contain a user or password; write them as a header`},
	{"base_url with a fragment", `toolsets: {a: {http: {base_url: "https://a/#b", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: must not have a fragment (#)`},
	{"base_url with dots", `toolsets: {a: {http: {base_url: "https://a/b/%2e%2E/c", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: must not contain the path segments . and ..`},
	{"base_url with a port", `toolsets: {a: {http: {base_url: "https://a:99999", tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.base_url: has a port that is not from 1 to 65535`},
	{"timeout without a unit", `toolsets: {a: {http: {base_url: "http://a", timeout: 30, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.timeout: must be a time from 1ms to 5m0s with its unit, such as 30s`},
	{"timeout that is too long", `toolsets: {a: {http: {base_url: "http://a", timeout: 6m, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.timeout: must be a time from 1ms to 5m0s with its unit, such as 30s`},
	{"retries", `toolsets: {a: {http: {base_url: "http://a", retries: 6, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.retries: must be a whole number from 0 to 5`},
	{"header's name", `toolsets: {a: {http: {base_url: "http://a", headers: {"X Y": a}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers."X Y": is not the name of a header; it may have letters, digits and hyphens`},
	{"header of the server", `toolsets: {a: {http: {base_url: "http://a", headers: {Host: a}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.Host: the server writes this header itself; leave it out`},
	{"twin headers", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: a, x-a: b}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.x-a: is already there with other capitals; leave one of them out`},
	{"header of two lines", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "a\nX-B: b"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: must be one line of ASCII, also after ${} is replaced`},
	{"header that is not ASCII", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: ä}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: must be one line of ASCII, also after ${} is replaced`},
	{"header that becomes two lines", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${LINES}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: must be one line of ASCII, also after ${} is replaced`},
	{"variable that is not set", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${MISSING}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the environment variable MISSING is not set; set it where the server is started`},
	{"variable that is empty", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${EMPTY}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the environment variable EMPTY is empty`},
	{"variable that is not UTF-8", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${LATIN}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the environment variable LATIN is not UTF-8`},
	{"variable of the server", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${FERMATA_SECRET}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: ${FERMATA_SECRET} is not allowed: the settings of the server never leave it`},
	{"variable with a default", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${A:-b}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: ${…} takes the name of an environment variable or file:/path, and nothing else`},
	{"variable that is not closed", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${A"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: a ${ is not closed; write ${NAME}, or $$ for a dollar sign`},
	{"variable without braces", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: Bearer $WEATHER_KEY}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: a dollar sign stands before a name; write ${NAME} for an environment variable, or $$ for a dollar sign`},
	{"variable in a path", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/${WEATHER_KEY}"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: ${} is only replaced in headers, env, url and base_url; a parameter is {name}`},
	{"short secret", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${SHORT}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the environment variable SHORT has 7 bytes, and a secret below 16 can be guessed; use a longer one, or set unmasked: true on the toolset, which then does not hide it`},
	{"short secret in the file", `toolsets: {a: {http: {base_url: "http://a", headers: {Authorization: Bearer geheim}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.Authorization: the secret has 6 bytes, and a secret below 16 can be guessed; use a longer one, or set unmasked: true on the toolset, which then does not hide it`},
	{"long secret", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${LONG}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the environment variable LONG has 8193 bytes; a secret has at most 8192`},
	{"secret's file without a path", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${file:../secret}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: ${file:…} needs an absolute path without . and .., such as ${file:/run/secrets/name}`},
	{"secret's file that is not there", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${file:/nonexistent/secret}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: the secret's file "/nonexistent/secret": cannot be read: no such file or directory`},
	{"secret's file of the kernel", `toolsets: {a: {http: {base_url: "http://a", headers: {X-A: "${file:/proc/self/environ}"}, tools: [TOOL]}}}`, `t.yaml:1: toolsets.a.http.headers.X-A: ${file:…} cannot be a file of /proc, /sys or /dev`},
	{"tool without members", `toolsets: {a: {http: {base_url: "http://a", tools: [{}]}}}`, `t.yaml:1: toolsets.a.http.tools[0]: name is missing; write the name by which programs call the tool
t.yaml:1: toolsets.a.http.tools[0]: method is missing; write GET, HEAD, POST, PUT, PATCH or DELETE
t.yaml:1: toolsets.a.http.tools[0]: path is missing; write the path of the endpoint, such as /v1/current/{city}`},
	{"tool's name", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: get it, method: GET, path: /}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].name: must begin with a letter and have at most 64 letters, digits, underscores and hyphens`},
	{"tool's name of the class", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: aio, method: GET, path: /}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].name: aio is a name that every class has; take another one`},
	{"twin tools", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: get-it, method: GET, path: /}, {name: get_it, method: GET, path: /}]}}}`, `t.yaml:1: toolsets.a.http.tools[1]: the tool get_it has the name of the one in line 1; give one of them another name`},
	{"small method", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: get, path: /}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].method: must be GET, HEAD, POST, PUT, PATCH or DELETE; did you mean GET?`},
	{"unknown method", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: CONNECT, path: /}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].method: must be GET, HEAD, POST, PUT, PATCH or DELETE`},
	{"path without a slash", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: a}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: must begin with /`},
	{"path with a query", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/a?b=c"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: must not contain ? or #; parameters that are not in the path become the query or the body`},
	{"path with dots", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/a/%2e%2e/b"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: must not contain the segments . and ..`},
	{"path with an empty segment", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/a//b"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: must not contain an empty segment (//)`},
	{"path with a blank", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/a b"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: must be ASCII without blanks, and a parameter is {name}; write other characters as %20 and the like`},
	{"path with an open brace", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/{a"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: has a { without a name and }; a parameter is {name}`},
	{"path with an unknown parameter", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/{city}"}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: has the parameter "city", so parameters must have it in properties and in required`},
	{"path with an optional parameter", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: "/{city}", parameters: {type: object, properties: {city: {}}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].path: has the parameter "city", so parameters must have it in properties and in required`},
	{"parameters that are a list", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: [city]}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters: must be a JSON Schema, which is a map, not a list`},
	{"parameters without a type", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {properties: {}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters: must have type: object, because the input of a tool is an object`},
	{"properties that are a list", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, properties: [city]}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters.properties: must be a map from the names of parameters to their schemas`},
	{"required without a property", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, required: [city]}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters.required: names "city", which is not among the properties`},
	{"schema that is wrong", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, properties: {b: {type: strin}}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters: the schema is not valid at "properties.b.type"`},
	{"schema with a reference", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, properties: {b: {$ref: "file:///etc/passwd"}}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters: the schema refers to something outside of itself ($ref or $schema), and nothing is loaded for a schema`},
	{"schema with a pattern", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, properties: {b: {pattern: "(?=a\u202e)"}}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters: the schema has a pattern that is not a regular expression of RE2, which has no look-arounds and no back-references`},
	{"number that JSON has not", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, parameters: {type: object, properties: {a: {default: .inf}}}}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].parameters.properties.a.default: must be a number as JSON writes it, or a text in quotes`},
	{"result", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, result: data.items}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].result: must be a JSON Pointer, such as /data/items`},
	{"cost", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, cost: -1}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].cost: must be a whole number from 0 to 1000000000`},
	{"cost that is not whole", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, cost: 1.5}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].cost: must be a whole number from 0 to 1000000000`},
	{"approval", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, approval: allways}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].approval: must be never, always or operator; did you mean always?`},
	{"callers", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, callers: [programs]}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].callers[0]: must be code or direct`},
	{"twin callers", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, callers: [code, code]}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].callers[1]: code is in the list twice; leave one of them out`},
	{"no callers", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, callers: []}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].callers: is empty, so that nobody could call the tool; use hide, or take the tool out`},
	{"lane", `toolsets: {a: {http: {base_url: "http://a", tools: [{name: a, method: GET, path: /, lane: a b}]}}}`, `t.yaml:1: toolsets.a.http.tools[0].lane: must have at most 64 letters, digits, underscores and hyphens`},
	{"OpenAPI without a file", `toolsets: {a: {openapi: {base_url: "http://a"}}}`, `t.yaml:1: toolsets.a.openapi: file is missing; write the name of an OpenAPI document`},
	{"OpenAPI from a URL", `toolsets: {a: {openapi: {file: "https://a/b.json"}}}`, `t.yaml:1: toolsets.a.openapi.file: must be a file on this machine, not a URL; download the document first`},
	{"OpenAPI file that is not there", "toolsets: {a: {openapi: {file: missing.json}}}", `t.yaml:1: toolsets.a.openapi.file: the document "missing.json": cannot be read: no such file or directory`},
	{"OpenAPI with a list of tools", "toolsets: {a: {openapi: {file: petstore.json, tools: [a]}}}", `t.yaml:1: toolsets.a.openapi.tools: must be a map from names to rules; operations is the list of those that become tools`},
	{"OpenAPI without operations", "toolsets: {a: {openapi: {file: petstore.json, operations: []}}}", `t.yaml:1: toolsets.a.openapi.operations: names no operation; name at least one, or leave it out to have all`},
	{"OpenAPI with rules for no operation", "toolsets: {a: {openapi: {file: petstore.json, operations: [findPets], tools: {findPet: {cost: 1}}}}}", `t.yaml:1: toolsets.a.openapi.tools.findPet: is not among the operations; add it there, or leave it out; did you mean findPets?`},
	{"OpenAPI without tags", "toolsets: {a: {openapi: {file: petstore.json, tags: []}}}", `t.yaml:1: toolsets.a.openapi.tags: names no tag; name at least one, or leave it out to have all operations`},
	{"twin operations", "toolsets: {a: {openapi: {file: petstore.json, operations: [findPets, findPets]}}}", `t.yaml:1: toolsets.a.openapi.operations[1]: "findPets" is in the list twice; leave one of them out`},
	{"MCP without a server", "toolsets: {a: {mcp: {tools: [a]}}}", `t.yaml:1: toolsets.a.mcp: has no server; write url or command`},
	{"MCP with two servers", `toolsets: {a: {trusted: true, mcp: {url: "http://a", command: [a]}}}`, `t.yaml:1: toolsets.a.mcp: has a url and a command; leave one of them out`},
	{"MCP command that is a text", "toolsets: {a: {trusted: true, mcp: {command: npx -y a}}}", `t.yaml:1: toolsets.a.mcp.command: must be a list, such as [npx, -y, some-server], not a text`},
	{"MCP command that is empty", "toolsets: {a: {trusted: true, mcp: {command: []}}}", `t.yaml:1: toolsets.a.mcp.command: is empty; write the program first, then its arguments`},
	{"MCP command with a secret", `toolsets: {a: {trusted: true, mcp: {command: [a, "--key=${WEATHER_KEY}"]}}}`, `t.yaml:1: toolsets.a.mcp.command[1]: ${} is only replaced in headers, env, url and base_url, because everybody on the machine can see arguments; use env`},
	{"MCP command that is not trusted", "toolsets: {a: {mcp: {command: [a]}}}", `t.yaml:1: toolsets.a.mcp: the command runs with the rights of the server and may read what it may read; set trusted: true on the toolset if you trust it`},
	{"MCP command with a proxy", `toolsets: {a: {trusted: true, proxy: "http://a", mcp: {command: [a]}}}`, `t.yaml:1: toolsets.a.proxy: does not bind an MCP server with a command, which opens its own connections; leave it out`},
	{"MCP command with headers", "toolsets: {a: {trusted: true, mcp: {command: [a], headers: {X-A: a}}}}", `t.yaml:1: toolsets.a.mcp.headers: is for servers with a url only; leave it out, or write env`},
	{"MCP URL with env", `toolsets: {a: {mcp: {url: "http://a", env: {A: a}}}}`, `t.yaml:1: toolsets.a.mcp.env: is for servers with a command only; leave it out, or write headers`},
	{"MCP variable", "toolsets: {a: {trusted: true, mcp: {command: [a], env: {A-B: a}}}}", `t.yaml:1: toolsets.a.mcp.env.A-B: is not the name of an environment variable; it may have letters, digits and underscores`},
	{"MCP with retries", `toolsets: {a: {mcp: {url: "http://a", retries: 2}}}`, `t.yaml:1: toolsets.a.mcp.retries: is not known here; known are url, headers, command, env, timeout, start_timeout, tools`},
	{"policy of an unknown toolset", "toolsets: {weather: {http: HTTP}}\npolicies: {p: {block: [wether]}}", `t.yaml:2: policies.p.block[0]: there is no toolset "wether"; did you mean weather?`},
	{"policy of an unknown tool", "toolsets: {weather: {http: HTTP}}\npolicies: {p: {block: [weather.b]}}", `t.yaml:2: policies.p.block[0]: the toolset weather has no tool "b"`},
	{"policy that is partial", "toolsets: {a: {http: HTTP}}\npolicies: {p: {mode: partial}}", `t.yaml:2: policies.p.mode: must be on or off: partial is for FERMATA_TOOLSETS_MODE, and a policy has its principals`},
	{"policy with another mode", "toolsets: {a: {http: HTTP}}\npolicies: {p: {mode: aus}}", `t.yaml:2: policies.p.mode: must be on or off`},
	{"policy with a text", "toolsets: {a: {http: HTTP}}\npolicies: {p: {allow: a}}", `t.yaml:2: policies.p.allow: must be a list, not a text`},
	{"policy's max_day_cost", "toolsets: {a: {http: HTTP}}\npolicies: {p: {max_day_cost: -1}}", `t.yaml:2: policies.p.max_day_cost: must be a whole number from 0 to 1000000000`},
	{"policy's max_cost", "toolsets: {a: {http: HTTP}}\npolicies: {p: {max_cost: 1000000001}}", `t.yaml:2: policies.p.max_cost: must be a whole number from 0 to 1000000000`},
	{"policy's name", "toolsets: {a: {http: HTTP}}\npolicies: {\" p\": {}}", `t.yaml:2: policies." p": the name of a policy has 1 to 256 bytes that can be seen, and no blanks around it`},
	{"unknown policy", "toolsets: {a: {http: HTTP}}\npolicies: {readers: {}}\nprincipals: {alice: reader}", `t.yaml:3: principals.alice: there is no policy "reader"; did you mean readers?`},
	{"principal without a policy", "toolsets: {a: {http: HTTP}}\nprincipals: {alice: }", `t.yaml:2: principals.alice: must be a text, not empty`},
}

func TestMistakes(t *testing.T) {
	replacer := strings.NewReplacer("HTTP", `{base_url: "http://a", tools: [TOOL]}`, "TOOL", "{name: a, method: GET, path: /}")
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			f, err := read(t, replacer.Replace(replacer.Replace(m.file)))
			if err == nil {
				t.Fatalf("read %+v", f)
			}
			lines := strings.Split(err.Error(), "\n")
			for i, m := range config.Mistakes(err) {
				if dir, _, found := strings.Cut(m.File, "t.yaml"); found && i < len(lines) {
					lines[i] = strings.ReplaceAll(lines[i], dir, "")
				}
				if m.Error() == "" || !errors.Is(err, m) {
					t.Errorf("the error does not contain %v", m)
				}
			}
			if got := strings.Join(lines, "\n"); got != m.want {
				t.Errorf("got\n%s\nwant\n%s", got, m.want)
			}
			if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "key-of") {
				t.Error("the mistake tells a secret")
			}
		})
	}
}
