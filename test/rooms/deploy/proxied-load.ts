import { Agent } from 'node:https'
import { setTimeout } from 'node:timers/promises'
import { HOST, type Proxied } from './proxied.ts'

/** Below what the proxy allows one address. */
const EVERY_MS = 150
/** How long a replica has a request in hand: of ten clients about two have one there. */
const IN_HAND_MS = 30

export interface Tally {
  answered: number
  /** A line for each request that did not get 200. */
  failures: string[]
}

export interface ProxiedLoad {
  gets: Tally
  posts: Tally
  /** Orders that were acknowledged. */
  readonly orders: readonly string[]
  /** Resolves when the last request has its answer. */
  stop(): Promise<void>
}

/** Clients of addresses of their own that keep their connections: of each three requests two are GET, one is a POST. Nothing is tried again. */
export function startProxiedLoad({ send, certificate }: Proxied, clients: number): ProxiedLoad {
  const gets: Tally = { answered: 0, failures: [] }
  const posts: Tally = { answered: 0, failures: [] }
  const orders: string[] = []
  let isStopped = false
  const runClient = async (client: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: certificate, servername: HOST })
    const from = `127.0.1.${client + 1}`
    for (let round = 0; !isStopped; round++) {
      const isPost = round % 3 === 2
      const order = `${client}-${round}`
      const tally = isPost ? posts : gets
      try {
        const { status } = isPost
          ? await send(`/orders/${order}?waitMs=${IN_HAND_MS}`, { method: 'POST', from, agent })
          : await send(`/replica?waitMs=${IN_HAND_MS}`, { from, agent })
        if (status === 200) {
          tally.answered++
          if (isPost) orders.push(order)
        } else tally.failures.push(`${order}: ${status}`)
      } catch (error) {
        tally.failures.push(`${order}: ${(error as Error).message}`)
      }
      await setTimeout(EVERY_MS)
    }
    agent.destroy()
  }
  const running = Array.from({ length: clients }, (_, client) => runClient(client))
  return {
    gets,
    posts,
    orders,
    stop: async () => {
      isStopped = true
      await Promise.all(running)
    },
  }
}
