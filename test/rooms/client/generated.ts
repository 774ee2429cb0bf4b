import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The client of the service that these tests start, as it was written last. UPDATE_CLIENT=1 writes it anew. */
const FILE = fileURLToPath(new URL('./shop-client.ts', import.meta.url))

export function committedClient(current: string): string {
  if (process.env.UPDATE_CLIENT === '1' && current !== '') writeFileSync(FILE, current)
  return readFileSync(FILE, 'utf8')
}
