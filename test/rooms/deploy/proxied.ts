import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { type Agent, request } from 'node:https'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { authority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { type NginxServer, nginxServer } from '../../support/servers/nginx.ts'
import type { ServerOwner } from '../../support/servers/provide.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const DEPLOY = fileURLToPath(new URL('../../../deploy', import.meta.url))
const DOMAINS = [fileURLToPath(new URL('../../fixtures/proxied', import.meta.url)), SHIPPED]
const SECRET = 'a secret that both of the replicas have'
export const HOST = 'heddle.example.com'
/** Times a request may take before a test calls it lost. */
const ANSWER_MS = 60_000

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

export interface SendOptions {
  method?: string
  headers?: Record<string, string>
  /** A loopback address: to the proxy another client. */
  from?: string
  body?: string
  /** Keeps connections; default: each request has one of its own. */
  agent?: Agent
}

export interface Proxied {
  nginx: NginxServer
  replicas: [Replica, Replica]
  httpPort: number
  httpsPort: number
  /** Of the authority that clients trust. */
  certificate: string
  /** Sends over TLS, on a connection of its own. */
  send(path: string, options?: SendOptions): Promise<Answer>
  /** A line for each order that a replica has begun: `<id> <replica>`. */
  ordersFile: string
}

export interface Replica {
  name: string
  port: number
  /** The process that runs now. */
  heddle: Heddle
  /** Starts it again on its port. */
  start(): Promise<void>
}

/** Two replicas behind nginx with the shipped configuration: only host names, ports and paths are others. */
export async function startProxied(t: ServerOwner): Promise<Proxied | null> {
  const ports = { 'worker-1': await freePort(), 'worker-2': await freePort() }
  const { caFile, issue } = await authority(temporaryFolder(t), 'proxy')
  const shipped = await readFile(join(DEPLOY, 'nginx/heddle.conf'), 'utf8')
  const nginx = await startProxy(t, shipped, ports, await issue('nginx', `DNS:${HOST},DNS:localhost`))
  if (nginx === null) return null
  const certificate = await readFile(caFile, 'utf8')
  const ordersFile = join(nginx.directory, 'orders')
  await writeFile(ordersFile, '')
  const start = (name: keyof typeof ports) =>
    startHeddle(t, {
      lanes: 1,
      domains: DOMAINS,
      env: {
        HTTP_PORT: String(ports[name]),
        REPLICA_ID: name,
        HTTP_ALLOWED_HOSTS: `${HOST},127.0.0.1`,
        AUTH_SECRET_KEY: SECRET,
        ORDERS_FILE: ordersFile,
        // As the shipped deployments set it.
        SHUTDOWN_DELAY_MS: '5000',
      },
    })
  const replicas = (await Promise.all(
    (['worker-1', 'worker-2'] as const).map(async (name): Promise<Replica> => {
      const replica = {
        name,
        port: ports[name],
        heddle: await start(name),
        start: async () => {
          replica.heddle = await start(name)
        },
      }
      return replica
    }),
  )) as [Replica, Replica]
  const [httpPort, httpsPort] = nginx.ports as [number, number]
  const send = (path: string, sending: SendOptions = {}) => sendOver(httpsPort, certificate, path, sending)
  return { nginx, replicas, httpPort, httpsPort, certificate, send, ordersFile }
}

/** nginx with a configuration, in which only ports and paths are others. @param ports of the replicas */
export function startProxy(
  t: ServerOwner,
  configuration: string,
  ports: { 'worker-1': number; 'worker-2': number },
  { certificateFile, keyFile }: { certificateFile: string; keyFile: string },
): Promise<NginxServer | null> {
  return nginxServer(t, {
    ports: 2,
    configure: async (directory, [http, https]) => {
      const replaced = configuration
        .replace('listen 80;', `listen 127.0.0.1:${http};`)
        .replace('listen 443 ssl', `listen 127.0.0.1:${https} ssl`)
        .replaceAll(/worker-[12]:8000/g, (name) => `127.0.0.1:${ports[name.slice(0, 8) as keyof typeof ports]}`)
        .replaceAll(/\/(?:etc\/nginx|var\/log\/nginx)\//g, `${directory}/`)
      const allowed = join(directory, /^ +include .*\/(.*\/system-allow\.conf);$/m.exec(replaced)![1]!)
      await mkdir(join(directory, 'tls'))
      await mkdir(dirname(allowed))
      await copyFile(certificateFile, join(directory, 'tls/tls.crt'))
      await copyFile(keyFile, join(directory, 'tls/tls.key'))
      await writeFile(allowed, await readFile(join(DEPLOY, 'nginx/system-allow.conf')))
      await writeFile(join(directory, 'heddle.conf'), replaced)
      await writeFile(join(directory, 'nginx.conf'), mainConfiguration(directory))
    },
  })
}

/** What the distribution's own nginx.conf has around the files in conf.d, as far as it matters. */
function mainConfiguration(directory: string): string {
  return `
pid ${directory}/nginx.pid;
worker_processes 2;
worker_rlimit_nofile 4096;
error_log ${directory}/error.log;
events { worker_connections 1024; }
http {
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
  include ${directory}/heddle.conf;
}
`
}

function sendOver(port: number, ca: string, path: string, { method = 'GET', headers, from, body, agent }: SendOptions) {
  return new Promise<Answer>((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      method,
      ca,
      servername: HOST,
      agent: agent ?? false,
      timeout: ANSWER_MS,
      headers: { host: HOST, ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
      ...(from === undefined ? {} : { localAddress: from }),
    })
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${ANSWER_MS} ms`)))
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(chunks).toString() }),
      )
    })
    sent.end(body)
  })
}
