// Preload for the servers under test (node -r): nothing leaves this machine.
const { Socket } = require('node:net');
const { connect } = Socket.prototype;
const LOCAL = ['127.0.0.1', '::1', 'localhost'];
Socket.prototype.connect = function (...args) {
  // net.connect hands over its arguments already sorted: [options, callback].
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  const options = typeof first === 'object' ? first : { host: args[1] };
  const host = options?.host ?? 'localhost';
  if (options?.path || LOCAL.includes(host)) return connect.apply(this, args);
  process.nextTick(() => this.destroy(new Error(`${host}: no network in this test`)));
  return this;
};
