// A driver without a device, for tests of what is asked of one: memory is the host's, kernels do nothing, and all that
// would run is written to the file that DRIVER_LOG names, one line each: what, on what grid, with which parameters.
// A graph's commands are written when it is started. At the end a line counts the calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <vector>

#define API extern "C" int
#define UNUSED(name) \
    API name() { return 1; }
#define NOTHING(name) \
    API name() { return 0; }

namespace {

// A kernel with the offsets and sizes of its parameters, as its cubin tells them.
struct Kernel {
    std::string name;
    std::vector<std::pair<size_t, size_t>> parameters;
};

struct Command {
    Kernel* kernel = nullptr;
    unsigned shape[7] = {};
    std::vector<unsigned char> bytes;
    std::string other;
    bool alive = true;
};

struct Graph {
    std::vector<Command*> commands;
};

struct Executable {
    std::vector<Command*> nodes;
    std::vector<Command> commands;
};

struct Stream {
    Graph* recording = nullptr;
    Command* last = nullptr;
};

// The layout of CUDA_KERNEL_NODE_PARAMS.
struct NodeParameters {
    Kernel* kernel;
    unsigned shape[7];
    void** parameters;
    void** packed;
};

FILE* out = nullptr;
long queued = 0, started = 0, changed = 0, contexts = 0;
thread_local void* current = nullptr;
int context_of[8];

int devices() {
    const char* count = getenv("DRIVER_DEVICES");
    return count ? atoi(count) : 1;
}

// The same addresses in every process.
uint64_t memory(size_t bytes) {
    static uint64_t next = 0x200000000000;
    bytes = (bytes + 0xffff) & ~size_t(0xffff);
    void* at = mmap((void*)next, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) return 0;
    next += bytes;
    return (uint64_t)at;
}

void run(const Command& command) {
    if (!out) return;
    if (!command.kernel) {
        fprintf(out, "%s\n", command.other.c_str());
        return;
    }
    fprintf(out, "%s", command.kernel->name.c_str());
    for (unsigned size : command.shape) fprintf(out, " %u", size);
    fputc(' ', out);
    for (unsigned char byte : command.bytes) fprintf(out, "%02x", byte);
    fputc('\n', out);
}

int take(Stream* stream, Command command) {
    if (!stream->recording) {
        queued++;
        run(command);
        return 0;
    }
    stream->last = new Command(std::move(command));
    stream->recording->commands.push_back(stream->last);
    return 0;
}

void fill(Command& command, Kernel* kernel, void** parameters, void** packed) {
    command.kernel = kernel;
    if (packed) {
        auto bytes = (const unsigned char*)packed[1];
        command.bytes.assign(bytes, bytes + *(size_t*)packed[3]);
        return;
    }
    command.bytes.clear();
    for (size_t i = 0; i < kernel->parameters.size(); i++) {
        auto [offset, size] = kernel->parameters[i];
        command.bytes.resize(offset + size);
        memcpy(command.bytes.data() + offset, parameters[i], size);
    }
}

// Reads the sizes of parameters out of `.nv.info.NAME`.
bool describe(const std::vector<unsigned char>& image, Kernel& kernel) {
    auto header = (const Elf64_Ehdr*)image.data();
    auto sections = (const Elf64_Shdr*)(image.data() + header->e_shoff);
    auto names = (const char*)image.data() + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        if (".nv.info." + kernel.name != names + sections[i].sh_name) continue;
        const unsigned char* at = image.data() + sections[i].sh_offset;
        const unsigned char* end = at + sections[i].sh_size;
        while (at + 4 <= end) {
            unsigned value = at[2] | at[3] << 8;
            bool long_form = at[0] == 4, parameter = at[1] == 0x17;
            at += 4;
            if (long_form && parameter) {
                uint32_t flags;
                memcpy(&flags, at + 8, 4);
                size_t ordinal = at[4] | at[5] << 8, offset = at[6] | at[7] << 8;
                if (kernel.parameters.size() <= ordinal) kernel.parameters.resize(ordinal + 1);
                kernel.parameters[ordinal] = {offset, flags >> 18 & 0x3fff};
            }
            if (long_form) at += value;
        }
        return true;
    }
    return false;
}

__attribute__((destructor)) void end() {
    if (!out) return;
    fprintf(out, "calls: %ld queued, %ld graphs started, %ld changed, %ld contexts\n", queued, started, changed, contexts);
    fclose(out);
}

}  // namespace

API cuInit(unsigned) {
    if (const char* name = getenv("DRIVER_LOG")) out = fopen(name, "w");
    return 0;
}
API cuDriverGetVersion(int* version) { return *version = 13000, 0; }
API cuDeviceGetCount(int* count) { return *count = devices(), 0; }
API cuDeviceGet(int* device, int index) { return *device = index, 0; }
API cuDeviceGetName(char* name, int bytes, int) { return snprintf(name, bytes, "No device"), 0; }
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = 8ul << 30, 0; }
API cuDeviceGetUuid_v2(char* uuid, int device) { return memset(uuid, device, 16), 0; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
    // Multiprocessors, capability; shared memory that a block may have.
    *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 76 ? 0 : 227 << 10;
    return 0;
}
API cuDeviceCanAccessPeer(int* able, int, int) { return *able = 1, 0; }
API cuDevicePrimaryCtxRetain(void** context, int device) {
    contexts++;
    return *context = &context_of[device], 0;
}
API cuCtxGetCurrent(void** context) { return *context = current, 0; }
API cuCtxSetCurrent(void* context) { return current = context, 0; }
API cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, 0; }
NOTHING(cuCtxSynchronize)
NOTHING(cuCtxEnablePeerAccess)
API cuStreamCreateWithPriority(Stream** stream, unsigned, int) { return *stream = new Stream, 0; }
API cuStreamGetPriority(Stream*, int* priority) { return *priority = 0, 0; }
API cuStreamDestroy_v2(Stream* stream) { return delete stream, 0; }
NOTHING(cuStreamQuery)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamWaitEvent)
API cuEventCreate(void** event, unsigned) { return *event = new char, 0; }
NOTHING(cuEventRecord)
NOTHING(cuEventQuery)
NOTHING(cuEventSynchronize)
API cuEventElapsedTime_v2(float* ms, void*, void*) { return *ms = 1, 0; }
API cuMemAlloc_v2(uint64_t* address, size_t bytes) { return (*address = memory(bytes)) ? 0 : 2; }
API cuMemAllocAsync(uint64_t* address, size_t bytes, Stream*) { return (*address = memory(bytes)) ? 0 : 2; }
NOTHING(cuMemFree_v2)
NOTHING(cuMemFreeAsync)
API cuMemHostAlloc(void** address, size_t bytes, unsigned) { return (*address = (void*)memory(bytes)) ? 0 : 2; }
NOTHING(cuMemFreeHost)
API cuMemHostGetDevicePointer_v2(uint64_t* device, void* host, unsigned) { return *device = (uint64_t)host, 0; }
API cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = 8ul << 30, 0; }
API cuMemGetAllocationGranularity(size_t* bytes, void*, int) { return *bytes = 2 << 20, 0; }
UNUSED(cuMemAddressFree)
UNUSED(cuMemAddressReserve)
UNUSED(cuMemCreate)
UNUSED(cuMemMap)
UNUSED(cuMemRelease)
UNUSED(cuMemSetAccess)
UNUSED(cuMemUnmap)
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    memmove((void*)to, (void*)from, bytes);
    Command command;
    command.other = "copy " + std::to_string(to) + " " + std::to_string(from) + " " + std::to_string(bytes);
    return take(stream, command);
}
API cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, Stream* stream) {
    memset((void*)at, value, bytes);
    Command command;
    command.other = "fill " + std::to_string(at) + " " + std::to_string(value) + " " + std::to_string(bytes);
    return take(stream, command);
}
API cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream*) { return memcpy(to, (void*)from, bytes), 0; }
API cuMemcpyHtoDAsync_v2(uint64_t to, void* from, size_t bytes, Stream*) { return memcpy((void*)to, from, bytes), 0; }
API cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t bytes, Stream*) {
    return memmove((void*)to, (void*)from, bytes), 0;
}
API cuModuleLoadData(std::vector<unsigned char>** module, const unsigned char* image) {
    auto header = (const Elf64_Ehdr*)image;
    size_t bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    for (int i = 0; i < header->e_shnum; i++) {
        auto section = (const Elf64_Shdr*)(image + header->e_shoff + i * header->e_shentsize);
        size_t last = section->sh_type == SHT_NOBITS ? 0 : section->sh_offset + section->sh_size;
        if (last > bytes) bytes = last;
    }
    return *module = new std::vector<unsigned char>(image, image + bytes), 0;
}
API cuModuleUnload(std::vector<unsigned char>* module) { return delete module, 0; }
API cuModuleGetFunction(Kernel** kernel, std::vector<unsigned char>* module, const char* name) {
    *kernel = new Kernel{name, {}};
    return describe(*module, **kernel) ? 0 : 500;
}
API cuFuncGetAttribute(int* value, int attribute, Kernel*) { return *value = attribute == 0 ? 1024 : 0, 0; }
NOTHING(cuFuncSetAttribute)
API cuFuncGetParamInfo(Kernel* kernel, size_t index, size_t* offset, size_t* bytes) {
    if (index >= kernel->parameters.size()) return 1;
    std::tie(*offset, *bytes) = kernel->parameters[index];
    return 0;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int, size_t) { return *blocks = 2, 0; }
API cuLaunchKernel(
    Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
    Stream* stream, void** parameters, void** packed) {
    Command command;
    unsigned shape[7] = {gx, gy, gz, bx, by, bz, shared};
    memcpy(command.shape, shape, sizeof shape);
    fill(command, kernel, parameters, packed);
    return take(stream, command);
}
API cuStreamBeginCapture_v2(Stream* stream, int) { return stream->recording = new Graph, 0; }
API cuStreamEndCapture(Stream* stream, Graph** graph) {
    *graph = stream->recording;
    stream->recording = nullptr;
    return 0;
}
API cuStreamIsCapturing(Stream* stream, int* status) { return *status = stream->recording != nullptr, 0; }
API cuStreamGetCaptureInfo_v3(
    Stream* stream, int* status, uint64_t*, Graph**, Command*** last, void**, size_t* count) {
    *status = stream->recording != nullptr;
    *last = &stream->last;
    *count = stream->recording && !stream->recording->commands.empty();
    return 0;
}
API cuGraphGetNodes(Graph* graph, Command**, size_t* count) { return *count = graph->commands.size(), 0; }
// Nodes go with their graph: who names one after that is refused.
API cuGraphDestroy(Graph* graph) {
    for (Command* command : graph->commands) command->alive = false;
    return 0;
}
API cuGraphInstantiateWithFlags(Executable** made, Graph* graph, uint64_t) {
    *made = new Executable{graph->commands, {}};
    for (Command* command : graph->commands) (*made)->commands.push_back(*command);
    return 0;
}
API cuGraphExecDestroy(Executable* executable) { return delete executable, 0; }
API cuGraphExecUpdate_v2(Executable*, Graph*, void*) { return 910; }
NOTHING(cuGraphUpload)
API cuGraphExecKernelNodeSetParams_v2(Executable* executable, Command* node, const NodeParameters* given) {
    changed++;
    for (size_t i = 0; i < executable->nodes.size(); i++) {
        if (executable->nodes[i] != node || !node->alive) continue;
        memcpy(executable->commands[i].shape, given->shape, sizeof given->shape);
        fill(executable->commands[i], given->kernel, given->parameters, given->packed);
        return 0;
    }
    return 1;
}
API cuGraphLaunch(Executable* executable, Stream*) {
    started++;
    for (const Command& command : executable->commands) run(command);
    return 0;
}
API cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_A_TEST", 0; }
API cuGetErrorString(int, const char** text) { return *text = "refused", 0; }

// cuBLASLt: a product is a launch whose parameters are the addresses.
API cublasLtCreate(void** handle) { return *handle = new char, 0; }
API cublasLtMatmulDescCreate(void** made, int, int) { return *made = new char, 0; }
API cublasLtMatmulPreferenceCreate(void** made) { return *made = new char, 0; }
API cublasLtMatrixLayoutCreate(void** made, int, uint64_t, uint64_t, int64_t) { return *made = new char, 0; }
NOTHING(cublasLtDestroy)
NOTHING(cublasLtMatmulDescDestroy)
NOTHING(cublasLtMatmulDescSetAttribute)
NOTHING(cublasLtMatmulPreferenceDestroy)
NOTHING(cublasLtMatmulPreferenceSetAttribute)
NOTHING(cublasLtMatrixLayoutDestroy)
NOTHING(cublasLtMatrixLayoutSetAttribute)
API cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void* found, int* count) {
    memset(found, 0, 96);
    return *count = 1, 0;
}
API cublasLtMatmul(
    void*, void*, void*, void* a, void*, void* b, void*, void*, void* c, void*, void* d, void*, void*, void* scratch,
    size_t bytes, Stream* stream) {
    static Kernel product{"product", {{0, 48}}};
    uint64_t words[6] = {(uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d, (uint64_t)scratch, bytes};
    void* parameters[1] = {words};
    return cuLaunchKernel(&product, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}
extern "C" size_t cublasLtGetVersion() { return 130000; }
extern "C" const char* cublasLtGetStatusName(int) { return "CUBLAS_STATUS_OF_A_TEST"; }
extern "C" const char* cublasLtGetStatusString(int) { return "refused"; }

// cuDNN: descriptors keep what they are given; a convolution is a launch with the addresses that its pack names. Images
// of the strides that DRIVER_REFUSES names (the innermost but one) have no way.
namespace {

struct Descriptor {
    int kind;
    std::vector<std::pair<int, std::vector<int64_t>>> values;

    const std::vector<int64_t>& value(int attribute) const {
        static const std::vector<int64_t> none;
        for (auto& [name, value] : values)
            if (name == attribute) return value;
        return none;
    }
};

const size_t scratch_bytes = 3000;

}  // namespace

extern "C" size_t cudnnGetVersion() { return 91400; }
extern "C" const char* cudnnGetErrorString(int) { return "CUDNN_STATUS_OF_A_TEST"; }
API cudnnCreate(Stream*** handle) { return *handle = new Stream*(nullptr), 0; }
NOTHING(cudnnDestroy)
API cudnnSetStream(Stream** handle, Stream* stream) { return *handle = stream, 0; }
API cudnnBackendCreateDescriptor(int kind, Descriptor** made) { return *made = new Descriptor{kind, {}}, 0; }
API cudnnBackendDestroyDescriptor(Descriptor* made) { return delete made, 0; }
API cudnnBackendSetAttribute(Descriptor* made, int attribute, int type, int64_t count, const int64_t* values) {
    // Words of 64 bits only: sizes, strides, names, pointers, descriptors.
    bool words = type == 0 || type == 3 || type == 6 || type == 15;
    made->values.push_back({attribute, words ? std::vector<int64_t>(values, values + count) : std::vector<int64_t>()});
    return 0;
}
API cudnnBackendGetAttribute(Descriptor*, int attribute, int, int64_t, int64_t* count, int64_t* values) {
    // Results of the heuristic, scratch memory, notes.
    *count = attribute == 203 || attribute == 202 || attribute == 402 || attribute == 300;
    if (attribute == 402) *values = scratch_bytes;
    return 0;
}
API cudnnBackendFinalize(Descriptor* made) {
    const char* refused = getenv("DRIVER_REFUSES");
    const std::vector<int64_t>& strides = made->value(903);
    return refused && strides.size() > 2 && strides[strides.size() - 2] == atoi(refused) ? 3000 : 0;
}
API cudnnBackendExecute(Stream** handle, Descriptor*, Descriptor* pack) {
    static Kernel convolution{"convolution", {{0, 40}}};
    uint64_t words[5] = {};
    for (int i = 0; i < 3; i++) words[i] = pack->value(1001)[i];
    words[3] = pack->value(1003)[0], words[4] = scratch_bytes;
    void* parameters[1] = {words};
    return cuLaunchKernel(&convolution, 1, 1, 1, 1, 1, 1, 0, *handle, parameters, nullptr);
}
