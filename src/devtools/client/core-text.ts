import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The part of a client that is the same for every service, in the order in which it is read. */
const FILES = [
  'options',
  'failures',
  'call',
  'channel',
  'transport',
  'encoding',
  'retries',
  'cookie-jar',
  'event-stream',
] as const

/** What a user of the client may import of it. */
const PUBLIC = new Set(
  `ClientOptions CallOptions IdempotentOptions QueryValue Query FormFile FormFiles RawBody ValidationFault ApiError Unreachable RuntimeFailure
  ValidationFailure KeyFailure Success Call Channel`.split(/\s+/),
)

let kept: string | undefined

/** The files of `core/` as one text without imports. They stay TypeScript in the package, too. */
export function coreText(): string {
  kept ??= FILES.map((name) => flat(readFileSync(join(import.meta.dirname, `core/${name}.ts`), 'utf8'))).join('\n')
  return kept
}

/** Names that the text uses: its own, and those of the platform. */
export function coreNames(): Set<string> {
  return new Set(coreText().match(/\b[A-Z]\w*\b/g))
}

function flat(source: string): string {
  return source
    .replace(/^import .*\n/gm, '')
    .replace(/^ *\/\/ biome-ignore .*\n/gm, '')
    .replace(/^export (?=(?:async )?(?:class|const|function\*?|interface|type) (\w+))/gm, (word, name) =>
      PUBLIC.has(name) ? word : '',
    )
    .trim()
    .concat('\n')
}
