import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** What `"heddle": { "tools": { "db": "postgres" } }` of the application's package.json chooses, as TOOLS says it; undefined when it says nothing. */
export function chosenTools(faults: string[]): string | undefined {
  let text: string
  try {
    text = readFileSync(resolve('package.json'), 'utf8')
  } catch {
    // Not every folder in which a process is started has one.
    return undefined
  }
  let manifest: { heddle?: { tools?: unknown } }
  try {
    manifest = JSON.parse(text)
  } catch (error) {
    faults.push(`package.json: is no JSON: ${(error as Error).message}`)
    return undefined
  }
  const tools = manifest.heddle?.tools
  if (tools === undefined) return undefined
  const entries = typeof tools === 'object' && tools !== null ? Object.entries(tools) : []
  if (entries.length === 0 || entries.some(([, chosen]) => typeof chosen !== 'string' || !/^[\w-]+$/.test(chosen))) {
    faults.push('package.json: heddle.tools: expected implementations by tool, like { "db": "postgres" }')
    return undefined
  }
  return entries.map(([tool, chosen]) => `${tool}=${chosen}`).join(',')
}
