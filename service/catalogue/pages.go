package catalogue

// pages stores texts numbered from 0 without gaps. A catalogue holds many short texts, so several share an allocation:
// a text takes its bytes, one to three for its length, and 2 for its page. Pages are immutable, so a text that was read
// stays valid.
type pages struct {
	pages []string // each holds the lengths and bytes of textsOfPage texts
	n     int
	bytes int64  // total of all texts and their lengths
	buf   []byte // scratch
}

const textsOfPage = 8

func (p *pages) at(i int32) string {
	_, text, _ := p.cut(i)
	return text
}

// cut splits a text's page into the bytes before the text, the text, and the bytes after it.
func (p *pages) cut(i int32) (before, text, after string) {
	page := p.pages[i/textsOfPage]
	from := 0
	for range i % textsOfPage {
		n, at := length(page, from)
		from = at + n
	}
	n, at := length(page, from)
	return page[:from], page[at : at+n], page[at+n:]
}

// length reads the length of the text at a place in a page, and returns where its bytes begin.
func length(page string, at int) (n, begin int) {
	for shift := 0; ; shift += 7 {
		b := page[at]
		at++
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n, at
		}
	}
}

func (p *pages) add(text string) {
	before := ""
	if p.n%textsOfPage == 0 {
		p.pages = append(p.pages, "")
	} else {
		before = p.pages[len(p.pages)-1]
	}
	p.put(len(p.pages)-1, before, text, "")
	p.n++
}

func (p *pages) set(i int32, text string) {
	before, old, after := p.cut(i)
	if old != text {
		p.put(int(i/textsOfPage), before, text, after)
	}
}

func (p *pages) put(page int, before, text, after string) {
	p.buf = append(p.buf[:0], before...)
	p.buf = appendString(p.buf, text)
	p.buf = append(p.buf, after...)
	p.bytes += int64(len(p.buf) - len(p.pages[page]))
	p.pages[page] = string(p.buf)
}

func (p *pages) drop() {
	p.n--
	page := p.n / textsOfPage
	before, _, _ := p.cut(int32(p.n))
	p.bytes -= int64(len(p.pages[page]) - len(before))
	if p.pages[page] = string([]byte(before)); before == "" {
		p.pages = p.pages[:page]
	}
}
