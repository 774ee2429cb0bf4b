import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ask, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { nginxServer } from '../../support/servers/nginx.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'
import { AMBIGUOUS, BAD_CHUNKS, bytesOf } from './shapes.ts'
import { TARGET } from './target.ts'

const heddle = shareHeddle(TARGET)
/** What has not been answered by then is waited for by nginx. */
const ANSWERED_WITHIN_MS = 300
const AT_ONCE = 16

/** A proxy that keeps its connections to the service and passes bodies on while they come: the kind that requests are smuggled through. */
function configuration(directory: string, port: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
events { worker_connections 1024; }
http {
  ${temporary.map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
  log_format uri '$request_uri';
  access_log ${directory}/access.log uri;
  ignore_invalid_headers off;
  upstream service { server 127.0.0.1:${heddle.port}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host test;
    }
  }
}
`
}

test('nothing runs behind nginx that nginx itself has not taken for a request', async (t) => {
  const nginx = await nginxServer(t, {
    configure: (directory, [port]) => writeFile(join(directory, 'nginx.conf'), configuration(directory, port!)),
  })
  if (nginx === null) return
  const shapes = [...AMBIGUOUS, ...BAD_CHUNKS]
  const targetOf = (n: number): string => `/p/count/proxied-${n}`

  const attack = async (n: number): Promise<void> => {
    const { head, body } = bytesOf(shapes[n]!, 'POST /w/echo')
    const connection = await RawConnection.open(nginx.ports[0]!)
    await connection.send(Buffer.concat([head, body, requestText('GET', targetOf(n))]))
    await connection.closed(ANSWERED_WITHIN_MS).catch(() => {})
    connection.drop()
  }
  let next = 0
  const attackAll = async (): Promise<void> => {
    while (next < shapes.length) await attack(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, attackAll))

  // The connections that nginx keeps still carry the right answers.
  for (let n = 0; n < 20; n++) {
    const id = `after-${n}`
    const response = await fetch(`http://127.0.0.1:${nginx.ports[0]}/p/echo`, { headers: { 'x-request-id': id } })
    assert.equal(response.headers.get('x-request-id'), id, await response.text())
  }
  const log = join(nginx.directory, 'access.log')
  await until(async () => (await readFile(log, 'utf8')).includes('/p/echo'), 'the access log')
  const taken = (await readFile(log, 'utf8')).split('\n')
  assert.ok(
    taken.some((uri) => uri.startsWith('/p/count/')),
    'nginx reads some shapes as two requests',
  )
  for (const [n, { name }] of shapes.entries()) {
    const runs = jsonOf(await ask(heddle.port, 'GET', `/w/state/proxied-${n}:runs`)).data ?? 0
    const known = taken.filter((uri) => uri === targetOf(n)).length
    assert.ok(runs <= known, `${name}: ran ${runs} times, nginx knows of ${known}`)
  }
})
