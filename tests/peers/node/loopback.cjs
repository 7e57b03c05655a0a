// Preload for programs that would listen on every interface: they get loopback (node -r).
const { Server } = require('node:net');
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  const bare = /^\d+$/.test(String(port)) && typeof rest[0] !== 'string';
  return bare ? listen.call(this, port, '127.0.0.1', ...rest) : listen.call(this, port, ...rest);
};
