package demo

import (
	"fmt"
	"html"
	"strings"
)

// picture draws a product as SVG from its features: the bulge is its roundness, the colour its warmth, the density of
// the pattern how busy it is, and its price is on a tag. It uses attributes only, without style or script.
func (p *product) picture() []byte {
	bend := (p.Round + 1) / 2 // 0: straight edges
	curve := func(middle, bulge float64) float64 { return middle + bend*(bulge-middle) }
	side := func(s float64) string { // from the neck to the bottom, or its mirror image
		return fmt.Sprintf("Q%.1f %.1f %.1f 85 Q%.1f %.1f %.1f 130", 60+s*curve(25, 46), curve(56, 44), 60+s*38,
			60+s*curve(28, 44), curve(108, 118), 60+s*18)
	}
	body := "M72 28 " + side(1) + " L42 130 " + "Q" + fmt.Sprintf("%.1f %.1f 22 85 Q%.1f %.1f 48 28 Z",
		60-curve(28, 44), curve(108, 118), 60-curve(25, 46), curve(56, 44))
	hue := 285 + 65*p.Warm
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 150" role="img"><title>%s, €%.0f</title>`, html.EscapeString(p.Title), p.Price)
	fmt.Fprintf(&b, `<defs><clipPath id="body"><path d="%s"/></clipPath></defs>`, body)
	fmt.Fprintf(&b, `<ellipse cx="60" cy="132" rx="34" ry="5" fill="#000" opacity=".15"/>`)
	fmt.Fprintf(&b, `<path d="%s" fill="hsl(%.0f 60%% 52%%)"/><g clip-path="url(#body)" fill="hsl(%.0f 75%% 88%%)">`,
		body, hue, hue)
	p.pattern(&b)
	fmt.Fprintf(&b, `</g><path d="M46 22h28l-2 8h-24z" fill="hsl(%.0f 55%% 38%%)"/>`, hue)
	fmt.Fprintf(&b, `<path d="M74 30L92 42" stroke="#777" stroke-width="1"/><rect x="74" y="40" width="45" height="24" rx="3" fill="#fff" stroke="#777"/><text x="96.5" y="58" font-family="sans-serif" font-size="17" text-anchor="middle" fill="#222">€%.0f</text></svg>`, p.Price)
	return []byte(b.String())
}

// pattern draws the more stripes and, from the middle on, dots, the busier the product is.
func (p *product) pattern(b *strings.Builder) {
	n := int(4*(p.Busy+1) + 0.5) // from 0 to 8
	if p.Busy <= 1./3 {
		for k := range n {
			fmt.Fprintf(b, `<rect x="0" y="%.1f" width="120" height="4"/>`, 40+90*(float64(k)+0.5)/float64(n))
		}
		return
	}
	for k := range n {
		for j := range n {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3"/>`, 20+80*(float64(j)+0.5*float64(k%2)+0.25)/float64(n),
				40+90*(float64(k)+0.5)/float64(n))
		}
	}
}
