import RedisStateTool from '../../../src/extras/redis-state/index.ts'
import { connect, settingsOf, sharedServer } from '../../support/redis-under-test.ts'
import { buildTool } from '../../support/tool-runtime.ts'
import { runStateContract } from './contract.ts'

const shared = sharedServer()

runStateContract('on Redis, from two replicas', async (t) => {
  const server = await shared(t)
  if (server === null) return null
  const settings = settingsOf(server)
  await connect(t, settings).command('flushdb', [])
  const replica = () => {
    const { tool } = buildTool(RedisStateTool, { settings })
    t.after(() => tool.stop())
    return tool.api()
  }
  return { state: replica(), other: replica() }
})
