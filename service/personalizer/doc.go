// Package personalizer implements the contract of Azure Personalizer, a retired service, on an engine of package
// engine: a shop that called it changes one URL.
//
// Rank is a decision with slots, Reward reports an outcome by numbers, and Activate activates a deferred decision. The
// package translates bodies, ids of events and errors, and is stateless. Package server authorises requests and calls
// it through the table of [Adapter.Routes].
//
//	adapter.go        the routes, and their calls of the engine
//	path.go           the forms of a path
//	configuration.go  a placement as the configuration and the model of a resource
//	rank.go           the bodies of Rank: to a request of the engine, and from its answer
//	error.go          errors in the shape of the contract
//
// docs/personalizer.md maps every field and lists the differences.
package personalizer
