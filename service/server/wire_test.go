package server_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const binary = "application/x-protobuf"

// described reads proto/decision.proto, of whose language it knows no more than
// the file has: the messages are then those of the protobuf module.
func described(t testing.TB) map[string]protoreflect.MessageDescriptor {
	t.Helper()
	text, err := os.ReadFile("proto/decision.proto")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]descriptorpb.FieldDescriptorProto_Type{
		"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
		"uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32, "uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
		"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	}
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("decision.proto"), Package: proto.String("vitrine.v1"), Syntax: proto.String("proto3")}
	field := regexp.MustCompile(`^  (repeated )?(\w+) (\w+) = (\d+);`)
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "message "); ok {
			file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(strings.TrimSuffix(name, " {"))})
			continue
		}
		m := field.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[4])
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(m[3]), Number: proto.Int32(int32(number)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if m[1] != "" {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if scalar, ok := types[m[2]]; ok {
			f.Type = scalar.Enum()
		} else {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".vitrine.v1."+m[2])
		}
		last := file.MessageType[len(file.MessageType)-1]
		last.Field = append(last.Field, f)
	}
	descriptor, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]protoreflect.MessageDescriptor{}
	for i := range descriptor.Messages().Len() {
		m := descriptor.Messages().Get(i)
		messages[string(m.Name())] = m
	}
	return messages
}

// message encodes, by the protobuf module, what is given in JSON.
func message(t testing.TB, name, text string) string {
	t.Helper()
	m := dynamicpb.NewMessage(described(t)[name])
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m) // fields in order
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const mixed = `{"max_size":2,"features":[{"name":"kind","kind":"category","values":["new","old"]},{"name":"a","kind":"number"},
 {"name":"u","kind":"number","from":"user"},{"name":"title","kind":"text","buckets":8},{"name":"b","kind":"number"},{"name":"place","kind":"category","from":"user"},
 {"name":"c","kind":"cross","of":["a","u"]}],"policy":{"name":"ucb-mnl"}}`

// A request in either form is the same request, and has the same answer.
func TestBinaryIsJSON(t *testing.T) {
	for _, c := range []struct{ name, config, json, binary string }{
		{"numbers", plain,
			`{"decision_id":"a","items":[{"id":"p","features":{"x":1.5}},{"id":"q","features":{"x":-0.25}}]}`,
			`{"decision_id":"a","item_ids":["p","q"],"numbers":[1.5,-0.25]}`},
		{"revenues and rules", plain,
			`{"decision_id":"a","items":[{"id":"p","features":{"x":1},"revenue":2},{"id":"q","features":{"x":0},"revenue":0},{"id":"r","features":{"x":0},"revenue":3}],
			  "size":2,"include":["q"],"exclude":["p"],"at_most":[{"items":["q","r"],"most":1}]}`,
			`{"decision_id":"a","item_ids":["p","q","r"],"numbers":[1,0,0],"revenues":[2,0,3],"size":2,"include":["q"],"exclude":["p"],"at_most":[{"items":["q","r"],"most":1}]}`},
		{"texts and a user", mixed,
			`{"decision_id":"a","user":{"u":0.5,"place":"Trier"},"items":[{"id":"p","features":{"a":1,"b":2,"kind":"new","title":"red shoes"}},{"id":"q","features":{"a":3,"b":4,"kind":"old","title":"blue ones"}}],
			  "at_most":[{"feature":"kind","most":1}]}`,
			`{"decision_id":"a","item_ids":["p","q"],"numbers":[1,2,3,4],"texts":["new","red shoes","old","blue ones"],"user_numbers":[0.5],"user_texts":["Trier"],
			  "at_most":[{"feature":"kind","most":1}]}`},
		{"a baseline", strings.Replace(plain, `"max_size"`, `"mode":"shadow","max_size"`, 1),
			`{"decision_id":"a","items":[{"id":"p","features":{"x":1}},{"id":"q","features":{"x":0}}],"baseline":["q"]}`,
			`{"decision_id":"a","item_ids":["p","q"],"numbers":[1,0],"baseline":["q"]}`},
		{"objects and deferral", `{"max_size":2,"features":[{"name":"o","kind":"object","buckets":3},{"name":"brand","kind":"category"}],"policy":{"name":"ucb-mnl"}}`,
			`{"decision_id":"a","items":[{"id":"p","features":{"o":{"a":1},"brand":"x"}},{"id":"q","features":{"o":[{"b":"c"}],"brand":"y"}}],"defer":true}`,
			`{"decision_id":"a","item_ids":["p","q"],"texts":["{\"a\":1}","x","[{\"b\":\"c\"}]","y"],"defer":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := started(t, nil)
			s.want(201, "PUT", "/v1/placements/home", c.config)
			got := s.want(201, "POST", "/v1/placements/home/decisions", message(t, "DecisionRequest", c.binary), "Content-Type", binary)
			if got.header.Get("Content-Type") != binary {
				t.Errorf("the answer has the type %q", got.header.Get("Content-Type"))
			}
			again := parsed(t, s.want(200, "POST", "/v1/placements/home/decisions", c.json).body)
			answer := dynamicpb.NewMessage(described(t)["DecisionAnswer"])
			if err := (proto.UnmarshalOptions{DiscardUnknown: false}).Unmarshal([]byte(got.body), answer); err != nil || len(answer.GetUnknown()) > 0 {
				t.Fatalf("%v, unknown %x", err, answer.GetUnknown())
			}
			field := func(name string) protoreflect.Value {
				return answer.Get(answer.Descriptor().Fields().ByName(protoreflect.Name(name)))
			}
			ids, probabilities := field("item_ids").List(), field("choice_probabilities").List()
			if ids.Len() != len(again.Assortment) || probabilities.Len() != ids.Len() || ids.Len() == 0 {
				t.Fatalf("the answers %v and %+v", answer, again)
			}
			for k, i := range again.Assortment {
				if ids.Get(k).String() != i.ID || probabilities.Get(k).Float() != *i.Probability {
					t.Errorf("item %d is %v with %v, and %+v", k, ids.Get(k), probabilities.Get(k), i)
				}
			}
			propensity := 0.0
			if again.Propensity != nil {
				propensity = *again.Propensity
			}
			if field("decision_id").String() != again.Decision || field("outside_probability").Float() != *again.Outside ||
				field("expected_revenue").Float() != *again.Revenue || field("propensity").Float() != propensity || field("policy_version").Uint() != again.Version {
				t.Errorf("the answers %v and %+v", answer, again)
			}
		})
	}
}

func TestBadBinary(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(201, "PUT", "/v1/placements/mixed", mixed)
	bad := func(status int, kind, pointer, placement, body string) {
		t.Helper()
		s.problem(status, kind, pointer, "POST", "/v1/placements/"+placement+"/decisions", body, "Content-Type", binary)
	}
	encode := func(text string) string { return message(t, "DecisionRequest", text) }
	good := encode(`{"decision_id":"a","item_ids":["p"],"numbers":[1]}`)
	for cut := 1; cut < len(good); cut++ {
		if a := s.ask("POST", "/v1/placements/home/decisions", good[:cut], "Content-Type", binary); a.status != 400 && a.status != 422 {
			t.Errorf("%d bytes of %d: status %d", cut, len(good), a.status)
		}
	}
	bad(422, "invalid", "#/items", "home", "")
	bad(422, "invalid", "#/items", "home", encode(`{"item_ids":["p"],"numbers":[1,2]}`))
	bad(422, "invalid", "#/items", "home", encode(`{"item_ids":["p"],"numbers":[1],"texts":["a"]}`))
	bad(422, "invalid", "#/user", "home", encode(`{"item_ids":["p"],"numbers":[1],"user_numbers":[1]}`))
	bad(422, "invalid", "#/items/0/features/x", "home", encode(`{"item_ids":["p"],"numbers":["NaN"]}`))
	bad(422, "invalid", "#/items/0/features/x", "home", encode(`{"item_ids":["p"],"numbers":["-Infinity"]}`))
	bad(422, "invalid", "#/items/0/revenue", "home", encode(`{"item_ids":["p"],"numbers":[1],"revenues":["NaN"]}`))
	bad(422, "invalid", "#/items", "home", encode(`{"item_ids":["p","q"],"numbers":[1,1],"revenues":[1]}`))
	bad(422, "invalid", "#/user/u", "mixed", encode(`{"item_ids":["p"],"numbers":[1,2],"texts":["new","t"]}`))
	bad(422, "invalid", "#/items/0/features/kind", "mixed", encode(`{"item_ids":["p"],"numbers":[1,2],"texts":["odd","t"],"user_numbers":[0],"user_texts":[""]}`))
	bad(422, "invalid", "#/size", "home", encode(`{"item_ids":["p"],"numbers":[1],"size":2147483647}`))
	bad(400, "malformed", "", "home", encode(`{"item_ids":["p"],"numbers":[1],"size":2147483648}`))
	bad(400, "malformed", "", "home", good+"\xf8\x07\x01")         // field 127
	bad(400, "malformed", "", "home", good+"\x28\x01")             // revenues as a varint
	bad(400, "malformed", "", "home", good+"\x0a\x01\xff")         // not UTF-8
	bad(400, "malformed", "", "home", good+"\x2a\x03\x00\x00\x00") // half a double
	bad(400, "malformed", "", "home", `{"items":[]}`)
}

// Doubles may be packed or single, and a message may be in parts: that is the wire format.
func TestUnpackedNumbers(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	body := message(t, "DecisionRequest", `{"decision_id":"a","item_ids":["p","q"],"numbers":[1]}`)
	body += "\x19" + string(littleEndian(2))
	s.want(201, "POST", "/v1/placements/home/decisions", body, "Content-Type", binary)
	s.want(200, "POST", "/v1/placements/home/decisions", `{"decision_id":"a","items":[{"id":"p","features":{"x":1}},{"id":"q","features":{"x":2}}]}`)
}

func littleEndian(v float64) []byte {
	var b []byte
	bits := math.Float64bits(v)
	for i := range 8 {
		b = append(b, byte(bits>>(8*i)))
	}
	return b
}
