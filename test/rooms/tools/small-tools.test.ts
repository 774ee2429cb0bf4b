import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ToolStatus } from '../../../src/contracts/registry.ts'
import ConfigTool from '../../../src/tools/config/index.ts'
import LoggerTool from '../../../src/tools/logger/index.ts'
import RegistryTool from '../../../src/tools/registry/index.ts'
import TelemetryTool from '../../../src/tools/telemetry/index.ts'
import { LOADER } from '../../support/loader.ts'
import { buildTool, owner } from '../../support/tool-runtime.ts'

describe('config', () => {
  const build = (env: Record<string, string> = {}) => buildTool(ConfigTool, { env }).tool.api().get

  test('returns the text, trimmed, or the default', () => {
    const get = build({ SMTP_HOST: ' mail.example ', EMPTY: '' })
    assert.equal(get('SMTP_HOST'), 'mail.example')
    assert.equal(get('SMTP_USER', { default: 'me' }), 'me')
    assert.equal(get('EMPTY', { default: 'unset' }), 'unset')
    assert.equal(get('NONE', { default: '' }), '')
  })

  test('parses as the type that is given or that the default has', () => {
    const get = build({ PORT: '2525', RATIO: '-.5', TLS: 'yes' })
    assert.equal(get('PORT', { type: 'number' }), 2525)
    assert.equal(get('RATIO', { default: 1 }), -0.5)
    assert.equal(get('TLS', { default: false }), true)
    assert.equal(get('PORT'), '2525')
  })

  test('a missing variable is named, with what was wanted', () => {
    const expected = { code: 'CONFIG_MISSING', message: 'SMTP_PORT is not set: expected a number' }
    assert.throws(() => build()('SMTP_PORT', { type: 'number' }), expected)
  })

  test('a variable that does not parse is named, and its text is not shown', () => {
    const get = build({ API_PORT: 'hunter2', FLAG: 'maybe', HEX: '0x10' })
    const message = 'API_PORT does not parse: expected a number'
    assert.throws(() => get('API_PORT', { default: 1 }), { code: 'CONFIG_INVALID', message })
    assert.throws(() => get('FLAG', { type: 'boolean' }), /FLAG does not parse: expected true or false/)
    assert.throws(() => get('HEX', { type: 'number' }), { code: 'CONFIG_INVALID' })
  })

  test('a default of another type, an unknown type and a bad name are refused', () => {
    const get = build({ A: '1' })
    assert.throws(() => get('A', { type: 'number', default: 'x' } as never), { code: 'CONFIG_INVALID' })
    assert.throws(() => get('A', { type: 'date' } as never), { code: 'CONFIG_INVALID' })
    for (const name of ['', 'a b', '1A', undefined])
      assert.throws(() => get(name as string), { code: 'CONFIG_INVALID' })
  })
})

describe('logger', () => {
  const build = (logLevel: 'debug' | 'info' | 'warning' | 'error') => {
    const { tool, recorded } = buildTool(LoggerTool, { settings: { logLevel } })
    return { ...tool.api(owner('users.CreateUser')), logs: recorded.logs, sinks: recorded.logSinks }
  }

  for (const [logLevel, written] of [
    ['debug', ['DEBUG', 'INFO', 'WARNING', 'WARNING', 'ERROR']],
    ['info', ['INFO', 'WARNING', 'WARNING', 'ERROR']],
    ['error', ['INFO', 'WARNING', 'WARNING', 'ERROR']],
  ] as const) {
    test(`at ${logLevel} the runtime gets every level from INFO on, and DEBUG only when asked for`, () => {
      const { debug, info, warning, warn, error, logs } = build(logLevel)
      for (const log of [debug, info, warning, warn, error]) log('text')
      assert.deepEqual(
        logs.map((line) => line.level),
        written,
      )
    })
  }

  test('a line has the plugin as identity, and its fields', () => {
    const { info, logs } = build('info')
    info('created', { id: 5 })
    assert.deepEqual(logs, [{ level: 'INFO', message: 'created', identity: 'users.CreateUser', fields: { id: 5 } }])
  })

  test('whatever is logged becomes a text, and nothing throws', () => {
    const { info, logs } = build('info')
    const hostile = new Proxy(() => {}, {
      get: () => {
        throw new Error('no')
      },
    })
    const cycle: unknown[] = []
    cycle.push(cycle)
    const given: unknown[] = [undefined, null, 5, 1n, Symbol('s'), { a: 1 }, new Error('broken'), cycle, hostile]
    for (const message of given) info(message as string)
    assert.equal(logs.length, given.length)
    for (const line of logs) assert.equal(typeof line.message, 'string')
    assert.deepEqual([logs[5]!.message, logs[6]!.message], ['{"a":1}', 'broken'])
  })

  test('an error in the place of fields keeps its stack, other things are left out', () => {
    const { error, logs } = build('info')
    error('failed', new Error('broken') as never)
    error('failed', 'text' as never)
    assert.equal(logs[0]!.fields!.error, 'broken')
    assert.match(String(logs[0]!.fields!.stack), /small-tools\.test/)
    assert.equal(logs[1]!.fields, undefined)
  })

  test('a sink is added and removed, and must be a function', () => {
    const { addSink, sinks } = build('error')
    const remove = addSink(() => {})
    assert.equal(sinks.size, 1)
    remove()
    assert.equal(sinks.size, 0)
    assert.throws(() => addSink('console' as never), TypeError)
  })
})

describe('registry', () => {
  const build = () => {
    const { tool, recorded } = buildTool(RegistryTool)
    return { ...tool.api(), recorded }
  }

  test('a status is set with its message, null when there is none', () => {
    const { updateToolStatus, recorded } = build()
    updateToolStatus('db', 'FAIL', { message: 'slow' })
    updateToolStatus('db', 'OK')
    assert.deepEqual(recorded.statuses, [
      ['db', 'FAIL', 'slow'],
      ['db', 'OK', null],
    ])
  })

  test('a status that is none, a tool without a name and a message that is no text are refused', () => {
    const { updateToolStatus, recorded } = build()
    for (const status of ['ok', 'BROKEN', '', undefined]) {
      assert.throws(() => updateToolStatus('db', status as ToolStatus), /one of OK, FAIL, DEAD/)
    }
    assert.throws(() => updateToolStatus('', 'OK'), TypeError)
    assert.throws(() => updateToolStatus('db', 'OK', { message: 5 as never }), TypeError)
    assert.deepEqual(recorded.statuses, [])
  })

  test('metrics, the dump and sinks come from the host', () => {
    const { addMetricsSink, getMetrics, getSystemDump, recorded } = build()
    assert.deepEqual([getMetrics(), getSystemDump()], [[], { tools: {}, plugins: {}, lanes: {} }])
    const remove = addMetricsSink(() => {})
    assert.equal(recorded.metricsSinks.size, 1)
    remove()
    assert.equal(recorded.metricsSinks.size, 0)
    assert.throws(() => addMetricsSink(undefined!), TypeError)
  })
})

describe('telemetry', () => {
  test('span blocks run without effect while nothing provides tracing', async () => {
    const { getTracer } = new TelemetryTool().api()
    const result = await getTracer('users').startActiveSpan('work', async (span) => {
      assert.equal(span.isRecording(), false)
      span.setAttribute('key', 1).end()
      return 42
    })
    assert.equal(result, 42)
  })

  test('the API is not loaded before a tracer is asked for', () => {
    const file = fileURLToPath(new URL('../../../src/tools/telemetry/index.ts', import.meta.url))
    const script = `const { default: Telemetry } = require(${JSON.stringify(file)})
      const { cache } = require
      const isLoaded = () => Object.keys(cache).some((path) => path.includes('opentelemetry'))
      const { getTracer } = new Telemetry().api()
      const before = isLoaded()
      getTracer('x').startSpan('y').end()
      console.log(before, isLoaded())`
    const { stdout, stderr } = spawnSync(process.execPath, [...LOADER, '--eval', script], { encoding: 'utf8' })
    assert.equal(stdout.trim(), 'false true', stderr)
  })
})
