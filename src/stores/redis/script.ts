import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A Lua script from its own file. The number in the file's name says how many KEYS it takes; `n` means any number. */
export interface RedisScript {
  readonly lua: string
  /** The hash that EVALSHA takes. */
  readonly sha: string
}

/** Reads a script once, while the module that uses it loads: `readScript(new URL('./increment-n.lua', import.meta.url))`. */
export function readScript(file: URL): RedisScript {
  const lua = readFileSync(file, 'utf8')
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}
