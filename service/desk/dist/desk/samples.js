var e=()=>document.baseURI.split(`#`)[0].replace(/\/[^/]*$/,``),t=[`curl`,`Go`,`Python`,`TypeScript`],n=[{id:`sku1`,price:12,revenue:2.5},{id:`sku2`,price:7,revenue:1.5},{id:`sku3`,price:9,revenue:2}];function r(e,t,n,r,i){return{curl:o,Go:s,Python:c,TypeScript:l}[e](t,n,r,i)}var i=(e,t,n)=>(r,i,a)=>[`curl -X ${r} ${e}/v1/placements/${t}${i}`,...n?[`-H "Authorization: Bearer $VITRINE_KEY"`]:[],`-H "Content-Type: application/json" -d '${JSON.stringify(a).replaceAll(`'`,`'\\''`)}'`].join(` \\
  `);function a(t,n,r){let a=e=>e.kind===`number`?12:e.kind===`object`?{}:e.values?.[0]??e.name,o={id:`sku1`,features:Object.fromEntries(t.map(e=>[e.name,a(e)])),revenue:2.5,payload:{title:`Boots`,price:12}};return i(e(),n,r)(`PUT`,`/items`,{items:[o]})}function o(e,t,r,a){let o=i(t,r,a);return e===`create`?o(`PUT`,``,{max_size:3,min_size:3,mode:`explore`,explore_share:.02,features:[{name:`price`,kind:`number`}]}):e===`report`?o(`POST`,`/decisions/visit-1/outcome`,{choice:`sku1`}):o(`POST`,`/decisions`,{decision_id:`visit-1`,items:n.map(e=>({id:e.id,features:{price:e.price},revenue:e.revenue}))})}function s(e,t,r,i){return e===`create`?`c := &client.Client{Base: "${t}"${i?`, Key: os.Getenv("VITRINE_KEY")`:``}}
_, err := c.Put(ctx, "${r}", &api.Placement{
	MaxSize: 3,
	MinSize: 3,
	Mode:    api.Explore, ExploreShare: new(0.02),
	Features: []api.Feature{{Name: "price", Kind: "number"}},
})`:e===`report`?`err = c.Outcome(ctx, "${r}", page.Decision, "sku1") // "" if the shopper took nothing`:`page, err := c.Decide(ctx, "${r}", &api.Request{Items: []api.Item{
${n.map(e=>`	{ID: "${e.id}", Features: api.Values{api.Number("price", ${e.price})}, Revenue: new(${e.revenue.toFixed(1)})},`).join(`
`)}
}})
// show page.Items(), in this order`}function c(e,t,r,i){return e===`create`?`import ${i?`os, `:``}vitrine

client = vitrine.Client("${t}"${i?`, key=os.environ["VITRINE_KEY"]`:``})
client.put_placement("${r}", max_size=3, min_size=3, mode="explore", explore_share=0.02,
                     features=[{"name": "price", "kind": "number"}])`:e===`report`?`client.outcome("${r}", page["decision_id"], choice="sku1")  # None if the shopper took nothing`:`page = client.decide("${r}", items=[
${n.map(e=>`    {"id": "${e.id}", "features": {"price": ${e.price}}, "revenue": ${e.revenue}},`).join(`
`)}
])
# show page["assortment"], in this order`}function l(e,t,r,i){return e===`create`?`import { Client } from "vitrine";

const client = new Client({ base: "${t}"${i?`, key: process.env.VITRINE_KEY`:``} });
await client.call("putPlacement", {
  path: { name: "${r}" },
  body: { max_size: 3, min_size: 3, mode: "explore", explore_share: 0.02, features: [{ name: "price", kind: "number" }] },
});`:e===`report`?`await client.outcome("${r}", page.decision_id, "sku1"); // null if the shopper took nothing`:`const page = await client.decide("${r}", { items: [
${n.map(e=>`  { id: "${e.id}", features: { price: ${e.price} }, revenue: ${e.revenue} },`).join(`
`)}
] });
// show page.assortment, in this order`}export{r as i,t as n,a as r,e as t};