import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, type StartOptions, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { openWebSocket, type RawWebSocket } from '../../support/web-socket.ts'

const OWN = fileURLToPath(new URL('domains', import.meta.url))

/** A process with the plugins of this folder, for all tests of a file. Called while that is loaded: it ends with the last of them. */
export function startTalk(options: StartOptions = {}): () => Promise<Heddle> {
  const ends: (() => Promise<void>)[] = []
  let started: Promise<Heddle> | undefined
  after(async () => {
    for (const end of ends) await end()
  })
  return () => {
    started ??= startHeddle({ after: (end) => void ends.push(end) }, { domains: [OWN, SYSTEM_ROUTES], ...options })
    return started
  }
}

/** A client whose `open` has answered. */
export async function talk(heddle: Heddle, path = '/talk/a'): Promise<RawWebSocket> {
  const client = await openWebSocket(heddle.port, path)
  await client.text(1)
  return client
}

/** A client that hears how others leave: in each lane there is one. */
export interface Witness {
  /** Code and reason that plugins were told. */
  left(): [code: number, reason: string][]
}

/** Opens clients until each lane has one. */
export async function witness(heddle: Heddle, lanes: number): Promise<Witness> {
  const clients: RawWebSocket[] = []
  for (;;) {
    clients.push(await talk(heddle, '/talk/witness'))
    const { body } = await heddle.json('/system/lanes')
    const served = (body as { sockets_open: number }[]).filter(({ sockets_open }) => sockets_open > 0)
    if (served.length >= lanes || clients.length >= 50) break
  }
  return {
    left: () => {
      // Those of one lane hear the same.
      const heard = clients.map(({ texts }) => texts.filter((text) => text.startsWith('{"left"')))
      const most = new Map<string, number>()
      for (const texts of heard) {
        for (const text of new Set(texts)) {
          most.set(text, Math.max(most.get(text) ?? 0, texts.filter((each) => each === text).length))
        }
      }
      return [...most].flatMap(([text, count]) => {
        const { left, reason } = JSON.parse(text) as { left: number; reason: string }
        return Array.from({ length: count }, (): [number, string] => [left, reason])
      })
    },
  }
}
