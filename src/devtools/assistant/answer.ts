// Answers an assistant over the Model Context Protocol.

import { HeddleError } from '../../core/errors/catalogue.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'
import { type ProcessView, TOOLS, ToolFault } from './tools.ts'

type Sdk = typeof import('@modelcontextprotocol/sdk/server/mcp.js') &
  typeof import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js')
type ToolAnswer = { content: { type: 'text'; text: string }[]; isError?: boolean }

const MODULES = ['mcp', 'webStandardStreamableHttp'].map((name) => `@modelcontextprotocol/sdk/server/${name}.js`)

/** Loaded with the first request of an assistant. @throws PACKAGE_MISSING */
async function sdk(): Promise<Sdk> {
  needPackages('The interface for assistants', OPTIONAL_PACKAGES.assistants)
  const modules = await Promise.all(MODULES.map((name) => import(name)))
  return Object.assign({}, ...modules) as Sdk
}

/** Characters of an answer: a context window is not endless. */
const ANSWER_MAX = 60_000

const INSTRUCTIONS = `A running heddle process: plugins in worker threads (lanes) behind one HTTP listener.
Something failed: find_requests with status "failed", then why with its id; it names plugin, file and line. A request that got 504, or a lane that hangs: lane_deaths names the line.
After a change is saved, npm run dev loads it by itself: lane_deaths shows the last reload, call_endpoint sends the request again, await_idle waits for what it causes, and why and trace show it.
Before you write a plugin: contracts shows routes and events, and lint what the architecture forbids.`

/**
 * Answers one request of the Model Context Protocol over Streamable HTTP. There are no sessions: each request stands for itself, so nothing is kept
 * between two of them.
 */
export async function answerAssistant(request: Request, view: ProcessView): Promise<Response> {
  const refused = await refusalOf(request.clone())
  if (refused !== null) return refused
  const { McpServer, WebStandardStreamableHTTPServerTransport } = await sdk()
  const server = new McpServer({ name: `heddle: ${view.title}`, version: view.version }, { instructions: INSTRUCTIONS })
  offer(server, view)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  try {
    const { status, headers, body } = await transport.handleRequest(request)
    return new Response(body === null ? null : await new Response(body).arrayBuffer(), { status, headers })
  } finally {
    await server.close()
  }
}

/** What the SDK answers otherwise than JSON-RPC wants it: an empty batch (section 6), and a call that names no tool (section 5.1). */
async function refusalOf(request: Request): Promise<Response | null> {
  let message: unknown
  try {
    message = await request.json()
  } catch {
    // The SDK says what is wrong with it.
    return null
  }
  const fault = (id: unknown, code: number, text: string): Response =>
    Response.json({ jsonrpc: '2.0', id, error: { code, message: text } }, { status: id === null ? 400 : 200 })
  if (Array.isArray(message)) return message.length === 0 ? fault(null, -32600, 'The batch is empty') : null
  const { id, method, params } = (message ?? {}) as { id?: unknown; method?: unknown; params?: { name?: unknown } }
  const isNameless = method === 'tools/call' && typeof params?.name !== 'string'
  const hasId = typeof id === 'string' || typeof id === 'number'
  return isNameless && hasId ? fault(id, -32602, 'params.name: expected the name of a tool') : null
}

function offer(server: InstanceType<Sdk['McpServer']>, view: ProcessView): void {
  for (const [name, { description, input, writes = false, call }] of Object.entries(TOOLS)) {
    const annotations = { readOnlyHint: !writes || !view.mayWrite, openWorldHint: false }
    server.registerTool(name, { description, inputSchema: input, annotations }, async (given) => {
      try {
        return answerOf(await call(view, given))
      } catch (error) {
        if (!(error instanceof ToolFault) && !(error instanceof HeddleError)) throw error
        return { ...answerOf(error.message), isError: true }
      }
    })
  }
}

function answerOf(value: unknown): ToolAnswer {
  const whole = typeof value === 'string' ? value : JSON.stringify(value, null, 1)
  const text =
    whole.length > ANSWER_MAX ? `${whole.slice(0, ANSWER_MAX)}\n… (${whole.length} characters: ask for less)` : whole
  return { content: [{ type: 'text', text }] }
}
