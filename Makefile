# Habits. Everything here is a go command, or a step of .ci/run.

FUZZTIME ?= 30s
COUNT ?= 6

.PHONY: browser desk desk-install screenshots test race lint bench fuzz golden man figures module dist wheel npm packages release artifacts site ci

test: ## what a newcomer runs
	go test ./...

race:
	.ci/run race

lint:
	.ci/run format vet lint

bench: ## compare two outputs with benchstat
	go test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

fuzz: ## every fuzz target in turn
	@grep -rE --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file func; do \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$${file%/*}" || exit 1; \
	done

golden: ## rewrite the golden files, then read the diff
	go test $$(grep -rlE --include='*_test.go' 'flag\.Bool\("rewrite"' . | xargs -n 1 dirname | sort -u) -rewrite
	git diff --stat

man: ## the page of the manual, vitrine.1
	go run ./cmd/vitrine man > vitrine.1

figures: ## draw the committed figures again, then look at them
	bench/figures.sh

module: ## make module NAME=host/path DIR=… PYTHON=name NPM=name IMAGE=name: a copy of the tree under these names
	.ci/module "$(NAME)" "$(DIR)" "$(PYTHON)" "$(NPM)" "$(IMAGE)"

packages: ## write the types and routes of the packages for Python and TypeScript again
	go test ./service/server -run TestPackages -rewrite

desk-install: ## what the desk is built with
	npm --prefix service/desk/web ci --no-audit --no-fund

desk: ## build the desk, service/desk/dist
	npm --prefix service/desk/web run build

browser: ## the desk's tests in Chromium
	.ci/run browser

screenshots: ## pictures of every view of the desk in out/desk, to look at, and those of the documentation
	VITRINE_LONG=1 go test ./service/desk/browsertest -count=1 -timeout 30m -run 'TestScreenshots|TestFigures' -screenshots $(CURDIR)/out/desk -figures $(CURDIR)/docs/figures/desk

dist: ## static binaries with checksums, in dist/
	.ci/dist

wheel: dist ## wheels for Python with these binaries, in dist/
	.ci/wheel

npm: ## the package for npm, in dist/
	.ci/npm

release: ## make release VERSION=0.1.0 URL=https://… SIGNING_KEY=file: everything of a release, in dist/, which must be empty
	URL="$(URL)" SIGNING_KEY="$(SIGNING_KEY)" .ci/release "$(VERSION)"

artifacts: ## from each artifact in dist/ to a first decision, as the README says
	.ci/artifacts dist

site: ## docs, Go packages and the API with search, in dist/site
	.ci/site/build

ci:
	.ci/run
