import { Kafka, logLevel } from 'kafkajs'

export default (get: (name: string) => string) => async () => {
  const kafka = new Kafka({ brokers: [get('TRIAL_NOWHERE')], retry: { retries: 0 }, logLevel: logLevel.NOTHING })
  const producer = kafka.producer()
  try {
    await producer.connect()
    return await producer.send({ topic: 'looms', messages: [{ value: 'woven' }] })
  } catch (error) {
    if (!/ECONNREFUSED/.test(String(error))) throw error
    return 'refused'
  } finally {
    await producer.disconnect()
  }
}
