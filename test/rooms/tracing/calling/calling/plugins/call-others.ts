import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { type Data, plugin } from '#heddle'

/** Asks another service: by `fetch` or node:http, as often as it is told. */
export default plugin(({ http }) => {
  async function fetchOthers({ url, times = 1, headers = {}, timeoutMs = 5000 }: Data) {
    const texts: string[] = []
    for (let n = 0; n < times; n++) {
      try {
        const answer = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) })
        texts.push(await answer.text())
      } catch (error) {
        texts.push((error as Error).name)
      }
    }
    return { success: true, data: texts }
  }

  async function requestOthers({ url, headers = {}, method = 'POST' }: Data) {
    const sent = request(url, { method, headers })
    try {
      return { success: true, data: [await textOf(sent)] }
    } catch (error) {
      return { success: true, data: [(error as NodeJS.ErrnoException).code] }
    }
  }

  async function upgrade({ url }: Data) {
    const sent = request(url, { headers: { connection: 'upgrade', upgrade: 'other' } })
    sent.end()
    const [, socket] = await once(sent, 'upgrade')
    socket.destroy()
    return { success: true, data: [] }
  }

  http.addEndpoint('/fetch', 'POST', fetchOthers)
  http.addEndpoint('/request', 'POST', requestOthers)
  http.addEndpoint('/upgrade', 'POST', upgrade)
})

async function textOf(sent: ClientRequest): Promise<string> {
  sent.end('body')
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const chunk of answer) text += chunk
  return text
}
