// A measurement in a process of its own: calls the default export of the module that is named first with the plan, and sends its figures.
const [path, plan] = process.argv.slice(2) as [string, string]
const { default: measure } = (await import(new URL(path, import.meta.url).href)) as {
  default(plan: unknown): Promise<object>
}
process.send?.(await measure(JSON.parse(plan)), () => process.disconnect())
