import { FAULTS } from '../matrix/faults.ts'

/** Ways in which a handler ends its lane, by the names of the matrix. */
export const WAYS = ['throw', 'endless loop', 'heap', 'buffers'] as const
export type Way = (typeof WAYS)[number]

const textOf = (way: Way): string => FAULTS.find(({ name }) => name === way)!.text

/** The plugin that has the package do its thing, and ends its lane while it is at it. @param heddle what it imports heddle as */
export const usePackage = (heddle: string): string => `import { threadId } from 'node:worker_threads'
import { type Data, plugin, type Tools } from '${heddle}'
import make from '../thing.ts'

/** Gives the requests below a prefix to a fetch handler. @returns asks it, by the service's own port */
export type Mount = (handler: Parameters<Tools['http']['mount']>[1], path: string, init?: () => RequestInit) => () => Promise<Response>

/** How often the thing is under way when the lane ends. */
const AT_ONCE = 3
const kept: unknown[] = []
const WAYS: Record<string, () => void> = {
${WAYS.map((way) => `  '${way}': () => { ${textOf(way)} },`).join('\n')}
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export default plugin(({ http, config }) => {
  const mount: Mount = (handler, path, init) => {
    http.mount('/mounted', handler)
    return () => fetch(\`http://127.0.0.1:\${config.get('HTTP_PORT')}/mounted\${path}\`, init?.())
  }
  const use = make((name: string) => config.get(name), mount)
  http.addEndpoint('/use', 'GET', async () => ({ threadId, saw: await use() }))
  http.addEndpoint('/end', 'GET', async ({ way, afterMs }: Data) => {
    for (let n = 0; n < AT_ONCE; n++) void Promise.resolve(use()).catch(() => {})
    setTimeout(WAYS[String(way)]!, Number(afterMs))
    await pause(60_000)
  })
})
`

/** Somebody else's. */
export const beGood = (heddle: string): string => `import { plugin } from '${heddle}'

export default plugin(({ http }) => {
  http.addEndpoint('/good', 'GET', () => ({ pid: process.pid }))
})
`
